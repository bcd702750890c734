"""AutoGraph: small whole algorithms in a tf.function, as people write them."""

from conformance.probes import gradients
from conformance.program import program


@program()
def collatz(tf, np):
    @tf.function
    def steps(n):
        count = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            count += 1
        return count

    return [steps(tf.constant(n)) for n in (1, 6, 7, 27)]


@program()
def greatest_common_divisor(tf, np):
    @tf.function
    def gcd(a, b):
        while b != 0:
            a, b = b, a % b
        return a

    return [gcd(tf.constant(a), tf.constant(b)) for a, b in ((12, 18), (35, 64), (7, 0))]


@program()
def fizz_buzz(tf, np):
    @tf.function
    def count(n):
        fizz, buzz, both = 0, 0, 0
        for i in tf.range(1, n + 1):
            if i % 3 == 0 and i % 5 == 0:
                both += 1
            elif i % 3 == 0:
                fizz += 1
            elif i % 5 == 0:
                buzz += 1
        return fizz, buzz, both

    return count(tf.constant(47))


@program()
def newtons_square_root(tf, np):
    @tf.function
    def root(a):
        x = a
        for _ in tf.range(30):
            following = 0.5 * (x + a / x)
            if tf.abs(following - x) < 1e-7:
                break
            x = following
        return x

    return [gradients(tf, root, tf.constant(v, tf.float64)) for v in (2.0, 9.0)]


@program()
def newton_with_a_tape(tf, np):
    @tf.function
    def solve(c):
        x = tf.constant(1.0, tf.float64)
        for _ in tf.range(8):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x**3 - c
            x = x - y / tape.gradient(y, x)
        return x

    return [solve(tf.constant(v, tf.float64)) for v in (8.0, 3.0)]


@program()
def bisection(tf, np):
    @tf.function
    def solve(low, high):
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            if tf.cos(middle) > middle:
                low = middle
            else:
                high = middle
        return 0.5 * (low + high)

    return solve(tf.constant(0.0, tf.float64), tf.constant(1.0, tf.float64))


@program()
def power_iteration(tf, np):
    @tf.function
    def eigenvalue(a):
        v = tf.ones([2], tf.float64)
        value, before = tf.constant(0.0, tf.float64), tf.constant(-1.0, tf.float64)
        while tf.abs(value - before) > 1e-12:
            before = value
            w = tf.linalg.matvec(a, v)
            value = tf.norm(w)
            v = w / value
        return value

    return gradients(tf, eigenvalue, np.array([[2.0, 1.0], [1.0, 3.0]]))


@program()
def conjugate_gradients(tf, np):
    @tf.function
    def solve(a, b):
        x = tf.zeros_like(b)
        r = b
        p = r
        rs = tf.reduce_sum(r * r)
        k = 0
        while rs > 1e-18 and k < 10:
            ap = tf.linalg.matvec(a, p)
            alpha = rs / tf.reduce_sum(p * ap)
            x += alpha * p
            r -= alpha * ap
            new = tf.reduce_sum(r * r)
            p = r + (new / rs) * p
            rs = new
            k += 1
        return x

    a = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
    return gradients(tf, lambda b: solve(tf.constant(a), b), np.array([1.0, 2.0, 3.0]))


@program()
def a_recurrent_network_by_hand(tf, np):
    random = np.random.RandomState(0)
    w = tf.Variable(random.normal(size=(3, 4)).astype("float32") * 0.5)
    u = tf.Variable(random.normal(size=(4, 4)).astype("float32") * 0.5)
    x = tf.constant(random.normal(size=(2, 5, 3)).astype("float32"))

    @tf.function
    def run(x):
        h = tf.zeros([2, 4])
        for t in tf.range(5):
            h = tf.tanh(tf.matmul(x[:, t], w) + tf.matmul(h, u))
        return h

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(run(x) ** 2)
    return [loss, tape.gradient(loss, [w, u])]


@program()
def a_recurrent_network_with_masks_and_a_step(tf, np):
    random = np.random.RandomState(1)
    w = tf.Variable(random.normal(size=(2, 2)) * 0.5)
    x = tf.constant(random.normal(size=(4, 3, 2)))
    mask = tf.constant([True, True, False, True])

    @tf.function
    def step(x, mask):
        with tf.GradientTape() as tape:
            h = tf.zeros([3, 2], tf.float64)
            for t in tf.range(4):
                if mask[t]:
                    h = tf.tanh(x[t] + tf.matmul(h, w))
            loss = tf.reduce_mean(h * h)
        gradient = tape.gradient(loss, w)
        w.assign_sub(0.5 * gradient)
        return loss

    return [step(x, mask), step(x, mask), w]


@program()
def a_rollout_of_a_cart(tf, np):
    policy = tf.Variable([0.5, -1.0, 0.3, 0.2])

    @tf.function
    def rollout(state, most):
        steps = 0
        cost = 0.0
        for _ in tf.range(most):
            force = tf.reduce_sum(policy * state)
            position, speed, angle, turning = state[0], state[1], state[2], state[3]
            acceleration = force + 0.1 * tf.sin(angle)
            state = tf.stack(
                [
                    position + 0.1 * speed,
                    speed + 0.1 * acceleration,
                    angle + 0.1 * turning,
                    turning - 0.1 * acceleration * tf.cos(angle),
                ]
            )
            cost += tf.reduce_sum(state**2)
            steps += 1
            if tf.abs(state[0]) > 0.4 or tf.abs(state[2]) > 0.5:
                break
        return cost, steps

    results = []
    for start in ([0.0, 1.0, 0.1, 0.0], [0.1, 0.0, 0.0, 0.1]):
        with tf.GradientTape() as tape:
            cost, steps = rollout(tf.constant(start), tf.constant(12))
        results.append([cost, steps, tape.gradient(cost, policy)])
    return results


@program()
def value_iteration(tf, np):
    @tf.function
    def values(reward, discount):
        v = tf.zeros_like(reward)
        change = tf.constant(1.0)
        while change > 1e-4:
            left = tf.concat([v[:1], v[:-1]], 0)
            right = tf.concat([v[1:], v[-1:]], 0)
            new = reward + discount * tf.maximum(left, right)
            change = tf.reduce_max(tf.abs(new - v))
            v = new
        return v

    return values(tf.constant([0.0, 1.0, -1.0, 5.0, 0.0]), tf.constant(0.5))


@program()
def greedy_decoding(tf, np):
    table = tf.constant([[0.1, 0.7, 0.2, 0.0], [0.0, 0.1, 0.3, 0.6], [0.8, 0.0, 0.1, 0.1], [0.0, 0.0, 0.9, 0.1]])

    @tf.function
    def decode(token, end):
        score = 0.0
        length = 0
        while token != end and length < 10:
            probabilities = table[token]
            token = tf.argmax(probabilities, output_type=tf.int32)
            score += tf.math.log(probabilities[token])
            length += 1
        return token, score, length

    return [decode(tf.constant(0), tf.constant(2)), decode(tf.constant(1), tf.constant(9))]


@program()
def beam_search(tf, np):
    random = np.random.RandomState(2)
    table = tf.constant(np.log(random.dirichlet(np.ones(5), size=5)).astype("float32"))

    @tf.function
    def search(steps):
        tokens = tf.constant([0, 0, 0])
        scores = tf.constant([0.0, -1e9, -1e9])
        for _ in tf.range(steps):
            candidates = scores[:, None] + tf.gather(table, tokens)
            flat = tf.reshape(candidates, [-1])
            kept, values = [], []
            for _ in range(3):
                best = tf.argmax(flat, output_type=tf.int32)
                kept.append(best % 5)
                values.append(flat[best])
                flat = tf.where(tf.range(15) == best, -1e10, flat)
            tokens, scores = tf.stack(kept), tf.stack(values)
        return tokens, scores

    return search(tf.constant(4))


@program()
def runge_kutta_with_step_control(tf, np):
    @tf.function
    def integrate(y, rate):
        t = tf.constant(0.0, tf.float64)
        h = tf.constant(0.1, tf.float64)
        count = 0
        while t < 1.0 - 1e-12:
            if t + h > 1.0:
                h = 1.0 - t
            k1 = -rate * y
            k2 = -rate * (y + h * k1)
            error = tf.abs(h * (k2 - k1) / 2.0)
            if error < 1e-3:
                y = y + h * (k1 + k2) / 2.0
                t = t + h
                h = h * 1.5
            else:
                h = h * 0.5
            count += 1
        return y, count

    y, rate = tf.constant(1.0, tf.float64), tf.constant(2.0, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([y, rate])
        end, count = integrate(y, rate)
    return [end, count, tape.gradient(end, [y, rate])]


@program()
def line_search(tf, np):
    @tf.function
    def minimize(x):
        for _ in tf.range(20):
            value = tf.reduce_sum((x - 1.0) ** 4)
            direction = -4.0 * (x - 1.0) ** 3
            rate = tf.constant(1.0)
            while tf.reduce_sum((x + rate * direction - 1.0) ** 4) > value - 0.5 * rate * tf.reduce_sum(direction**2):
                rate *= 0.5
            x = x + rate * direction
        return x

    return minimize(tf.constant([2.0, -0.5]))


@program()
def sorting_by_exchange(tf, np):
    @tf.function
    def sort(x):
        swapped = tf.constant(True)
        while swapped:
            swapped = False
            for i in tf.range(3):
                a, b = x[i], x[i + 1]
                if a > b:
                    x = tf.tensor_scatter_nd_update(x, [[i], [i + 1]], [b, a])
                    swapped = True
        return x

    return gradients(tf, sort, [3.0, 1.0, 2.0, 0.5])


@program()
def mandelbrot(tf, np):
    @tf.function
    def escape(re, im):
        x, y, n = 0.0 * re, 0.0 * im, 0
        while x * x + y * y <= 4.0 and n < 30:
            x, y = x * x - y * y + re, 2.0 * x * y + im
            n += 1
        return n

    return [escape(tf.constant(a), tf.constant(b)) for a, b in ((0.0, 0.0), (1.0, 1.0), (-0.7, 0.4), (0.4, 0.3))]


@program()
def sinkhorn_until_it_converges(tf, np):
    @tf.function
    def plan(cost):
        k = tf.exp(-cost)
        u = tf.ones([3], tf.float64)
        v = tf.ones([3], tf.float64)
        error = tf.constant(1.0, tf.float64)
        while error > 1e-9:
            u = 1.0 / tf.linalg.matvec(k, v)
            v = 1.0 / tf.linalg.matvec(k, u, transpose_a=True)
            error = tf.reduce_max(tf.abs(u * tf.linalg.matvec(k, v) - 1.0))
        return u[:, None] * k * v[None, :]

    return gradients(tf, plan, np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [2.0, 1.5, 0.0]]))


@program()
def adam_by_hand(tf, np):
    w, m, v = tf.Variable([1.0, -1.0]), tf.Variable([0.0, 0.0]), tf.Variable([0.0, 0.0])

    @tf.function
    def train(n):
        loss = tf.constant(0.0)
        for t in tf.range(1, n + 1):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.sin(w) + w**2)
            g = tape.gradient(loss, w)
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.99 * v + 0.01 * g * g)
            step = tf.cast(t, tf.float32)
            w.assign_sub(0.1 * (m / (1.0 - 0.9**step)) / (tf.sqrt(v / (1.0 - 0.99**step)) + 1e-7))
        return loss

    return [train(tf.constant(5)), w, m, v]
