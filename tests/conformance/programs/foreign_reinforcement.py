"""Reinforcement learning as people write it for TensorFlow, on environments that NumPy steps."""

from conformance.program import program
from conformance.weights import set_weights


class Corridor:
    """A corridor of eight places: the agent starts in the middle, and the right end pays."""

    def __init__(self, np):
        self.np = np

    def reset(self):
        self.place = 4
        return self.observe()

    def observe(self):
        return self.np.array([self.place / 8, (8 - self.place) / 8, 1.0], "float32")

    def step(self, action):
        self.place += 1 if action == 1 else -1
        done = self.place in (0, 8)
        return self.observe(), 1.0 if self.place == 8 else -0.1, done


@program(rtol=5e-4, atol=1e-5)
def reinforce(tf, np):
    env = Corridor(np)
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), tf.keras.layers.Dense(6, activation="relu"), tf.keras.layers.Dense(2)]
    )
    set_weights(np, model)
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.02)
    random = np.random.default_rng(7)
    returns, losses = [], []
    for episode in range(3):
        observation, states, actions, rewards, done = env.reset(), [], [], [], False
        while not done and len(rewards) < 12:
            probabilities = tf.nn.softmax(model(observation[None])).numpy()[0]
            action = int(random.uniform() < probabilities[1])
            states.append(observation)
            actions.append(action)
            observation, reward, done = env.step(action)
            rewards.append(reward)
        discounted, total = [], 0.0
        for reward in rewards[::-1]:
            total = reward + 0.9 * total
            discounted.insert(0, total)
        discounted = np.array(discounted, "float32")
        with tf.GradientTape() as tape:
            logits = model(np.stack(states))
            neg_logprob = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=np.array(actions), logits=logits)
            loss = tf.reduce_mean(neg_logprob * discounted)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        returns.append(float(sum(rewards)))
        losses.append(loss)
    return [returns, losses, model.get_weights()[-1]]


@program(rtol=5e-4, atol=1e-5)
def deep_q_learning(tf, np):
    def create_q_model():
        inputs = tf.keras.layers.Input(shape=(3,))
        hidden = tf.keras.layers.Dense(8, activation="relu")(inputs)
        return tf.keras.Model(inputs=inputs, outputs=tf.keras.layers.Dense(2, activation="linear")(hidden))

    model, model_target = set_weights(np, create_q_model()), create_q_model()
    model_target.set_weights(model.get_weights())
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01, clipnorm=1.0)
    loss_function = tf.keras.losses.Huber()
    random = np.random.default_rng(2)
    losses = []
    for update in range(5):
        state_sample = random.uniform(size=(8, 3)).astype("float32")
        state_next = random.uniform(size=(8, 3)).astype("float32")
        rewards, done = random.normal(size=8).astype("float32"), (random.uniform(size=8) < 0.2).astype("float32")
        actions = random.integers(0, 2, 8)
        future = model_target.predict(state_next, verbose=0)
        updated_q_values = rewards + 0.99 * tf.reduce_max(future, axis=1)
        updated_q_values = updated_q_values * (1 - done) - done
        masks = tf.one_hot(actions, 2)
        with tf.GradientTape() as tape:
            q_action = tf.reduce_sum(tf.multiply(model(state_sample), masks), axis=1)
            loss = loss_function(updated_q_values, q_action)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        if update % 2 == 1:
            model_target.set_weights(model.get_weights())
        losses.append(float(loss))
    return [losses, model(np.eye(3, dtype="float32"))]


@program(rtol=5e-4, atol=1e-5)
def actor_critic_with_tensor_arrays(tf, np):
    class ActorCritic(tf.keras.Model):
        def __init__(self, num_actions, units):
            super().__init__()
            self.common = tf.keras.layers.Dense(units, activation="relu")
            self.actor = tf.keras.layers.Dense(num_actions)
            self.critic = tf.keras.layers.Dense(1)

        def call(self, inputs):
            x = self.common(inputs)
            return self.actor(x), self.critic(x)

    model = ActorCritic(2, 6)
    model(tf.zeros([1, 2]))
    set_weights(np, model)
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
    huber = tf.keras.losses.Huber(reduction="sum")
    eps = np.finfo(np.float32).eps.item()
    dynamics = tf.constant([[0.9, 0.1], [-0.2, 0.95]])

    def run_episode(initial_state, noise):
        action_probs = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
        values = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
        rewards = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
        shape, state = initial_state.shape, initial_state
        for t in tf.range(6):
            state = tf.expand_dims(state, 0)
            logits, value = model(state)
            probs = tf.nn.softmax(logits)
            action = tf.cast(noise[t] > probs[0, 0], tf.int32)
            values = values.write(t, tf.squeeze(value))
            action_probs = action_probs.write(t, probs[0, action])
            state = tf.squeeze(state @ dynamics) + tf.cast(action, tf.float32) * 0.1
            state.set_shape(shape)
            rewards = rewards.write(t, -tf.reduce_sum(tf.abs(state)))
            if tf.reduce_sum(tf.abs(state)) < 0.2:
                break
        return action_probs.stack(), values.stack(), rewards.stack()

    def get_expected_return(rewards, gamma=0.9):
        n = tf.shape(rewards)[0]
        returns = tf.TensorArray(dtype=tf.float32, size=n)
        rewards = rewards[::-1]
        discounted = tf.constant(0.0)
        shape = discounted.shape
        for i in tf.range(n):
            discounted = rewards[i] + gamma * discounted
            discounted.set_shape(shape)
            returns = returns.write(i, discounted)
        returns = returns.stack()[::-1]
        return (returns - tf.math.reduce_mean(returns)) / (tf.math.reduce_std(returns) + eps)

    @tf.function
    def train_step(initial_state, noise):
        with tf.GradientTape() as tape:
            action_probs, values, rewards = run_episode(initial_state, noise)
            returns = get_expected_return(rewards)
            action_probs, values, returns = [tf.expand_dims(x, 1) for x in [action_probs, values, returns]]
            actor_loss = -tf.math.reduce_sum(tf.math.log(action_probs) * (returns - values))
            loss = actor_loss + huber(values, returns)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return tf.math.reduce_sum(rewards), loss

    noise = tf.constant(np.random.default_rng(1).uniform(size=(3, 6)), tf.float32)
    return [train_step(tf.constant([1.0, -0.5]), noise[i]) for i in range(3)]


@program(rtol=5e-4, atol=1e-5)
def proximal_policy_optimization(tf, np):
    actor = set_weights(
        np, tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(8, tf.tanh), tf.keras.layers.Dense(2)])
    )
    critic = set_weights(
        np, tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(8, tf.tanh), tf.keras.layers.Dense(1)]), 1
    )
    policy_optimizer = tf.keras.optimizers.Adam(learning_rate=3e-3)
    value_optimizer = tf.keras.optimizers.Adam(learning_rate=1e-2)
    random = np.random.default_rng(0)
    observations = tf.constant(random.normal(size=(10, 3)), tf.float32)
    actions = tf.constant(random.integers(0, 2, 10), tf.int32)
    advantages = tf.constant(random.normal(size=10), tf.float32)
    returns = tf.constant(random.normal(size=10), tf.float32)

    def logprobabilities(logits, a):
        return tf.reduce_sum(tf.one_hot(a, 2) * tf.nn.log_softmax(logits), axis=1)

    old = logprobabilities(actor(observations), actions) + 0.1

    @tf.function
    def train_policy():
        with tf.GradientTape() as tape:
            logits = actor(observations)
            ratio = tf.exp(logprobabilities(logits, actions) - old)
            min_advantage = tf.where(advantages > 0, 1.2 * advantages, 0.8 * advantages)
            entropy = -tf.reduce_mean(tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), 1))
            loss = -tf.reduce_mean(tf.minimum(ratio * advantages, min_advantage)) - 0.01 * entropy
        policy_grads = tape.gradient(loss, actor.trainable_variables)
        policy_optimizer.apply_gradients(zip(policy_grads, actor.trainable_variables))
        return tf.reduce_mean(old - logprobabilities(actor(observations), actions))

    @tf.function
    def train_value_function():
        with tf.GradientTape() as tape:
            value_loss = tf.reduce_mean((returns - tf.squeeze(critic(observations))) ** 2)
        value_grads = tape.gradient(value_loss, critic.trainable_variables)
        value_optimizer.apply_gradients(zip(value_grads, critic.trainable_variables))
        return value_loss

    kls = []
    for _ in range(6):
        kls.append(train_policy())
        if kls[-1] > 1.5 * 0.2:
            break
    return [kls, [train_value_function() for _ in range(3)]]


@program(rtol=5e-4, atol=1e-5)
def deterministic_policy_gradient(tf, np):
    def get_actor():
        inputs = tf.keras.layers.Input(shape=(3,))
        out = tf.keras.layers.Dense(6, activation="relu")(inputs)
        return tf.keras.Model(inputs, tf.keras.layers.Dense(1, activation="tanh")(out) * 2.0)

    def get_critic():
        state, action = tf.keras.layers.Input(shape=(3,)), tf.keras.layers.Input(shape=(1,))
        concat = tf.keras.layers.Concatenate()([state, action])
        out = tf.keras.layers.Dense(6, activation="relu")(concat)
        return tf.keras.Model([state, action], tf.keras.layers.Dense(1)(out))

    actor, critic = set_weights(np, get_actor()), set_weights(np, get_critic(), 1)
    target_actor, target_critic = get_actor(), get_critic()
    target_actor.set_weights(actor.get_weights())
    target_critic.set_weights(critic.get_weights())
    critic_optimizer, actor_optimizer = tf.keras.optimizers.Adam(0.02), tf.keras.optimizers.Adam(0.01)

    @tf.function
    def update(state, action, reward, following):
        with tf.GradientTape() as tape:
            target_actions = target_actor(following, training=True)
            y = reward + 0.99 * target_critic([following, target_actions], training=True)
            critic_loss = tf.math.reduce_mean(tf.math.square(y - critic([state, action], training=True)))
        critic_grad = tape.gradient(critic_loss, critic.trainable_variables)
        critic_optimizer.apply_gradients(zip(critic_grad, critic.trainable_variables))
        with tf.GradientTape() as tape:
            actor_loss = -tf.math.reduce_mean(critic([state, actor(state, training=True)], training=True))
        actor_grad = tape.gradient(actor_loss, actor.trainable_variables)
        actor_optimizer.apply_gradients(zip(actor_grad, actor.trainable_variables))
        return critic_loss, actor_loss

    def update_target(target, original, tau):
        pairs = zip(target.get_weights(), original.get_weights())
        target.set_weights([original * tau + old * (1 - tau) for old, original in pairs])

    random, losses = np.random.default_rng(3), []
    for _ in range(4):
        batch = [random.normal(size=(8, width)).astype("float32") for width in (3, 1, 1, 3)]
        losses.append(update(*map(tf.convert_to_tensor, batch)))
        update_target(target_actor, actor, 0.1)
        update_target(target_critic, critic, 0.1)
    return [losses, target_actor(np.ones([2, 3], "float32"))]
