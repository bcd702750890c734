"""`tf.train`: checkpoints of variables and modules, and their manager."""

import os
import tempfile

from conformance.probes import raises
from conformance.program import program


def network(tf):
    class Inner(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable(7.0)

    class Network(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([1.0, 2.0])
            self.rows = [tf.Variable(1.0), tf.Variable(2.0)]
            self.pair = (tf.Variable([5], dtype=tf.int64),)
            self.by_name = {"b": tf.Variable(3.0, dtype=tf.float64)}
            self.inner = Inner()
            self.again = self.w

    return Network()


def names(tf, path):
    return [[name, shape] for name, shape in tf.train.list_variables(path) if not name.startswith("_CHECKPOINT")]


@program()
def what_is_saved_under_which_name(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = tf.train.Checkpoint(step=tf.Variable(3), net=network(tf), more=[tf.Variable(True)])
        path = checkpoint.save(os.path.join(folder, "ckpt"))
        listed = names(tf, path)
        reader = tf.train.load_checkpoint(folder)
        value = tf.train.load_variable(path, "net/w/.ATTRIBUTES/VARIABLE_VALUE")
        return [
            os.path.basename(path),
            [[name, shape] for name, shape in listed if "w/" not in name and "again/" not in name],
            value,
            reader.has_tensor("step/.ATTRIBUTES/VARIABLE_VALUE"),
            reader.get_tensor("step/.ATTRIBUTES/VARIABLE_VALUE"),
            reader.get_variable_to_shape_map()["net/w/.ATTRIBUTES/VARIABLE_VALUE"],
            reader.get_variable_to_dtype_map()["net/pair/0/.ATTRIBUTES/VARIABLE_VALUE"],
            os.path.basename(tf.train.latest_checkpoint(folder)),
        ]


@program()
def values_come_back(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        net, step = network(tf), tf.Variable(1)
        path = tf.train.Checkpoint(step=step, net=net).save(os.path.join(folder, "ckpt"))
        other, counter = network(tf), tf.Variable(0)
        for variable in other.variables:
            variable.assign(tf.zeros_like(variable))
        checkpoint = tf.train.Checkpoint(step=counter, net=other)
        status = checkpoint.restore(path)
        status.assert_consumed()
        status.assert_existing_objects_matched()
        return [[v.numpy() for v in other.variables], counter, checkpoint.save_counter]


@program()
def objects_without_values_yet(tf, np):
    class Late(tf.Module):
        def build(self):
            self.w = tf.Variable([0.0, 0.0])
            self.inner = tf.Module()
            self.inner.scale = tf.Variable(0.0)

    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(net=network(tf)).write(os.path.join(folder, "weights"))
        late = Late()
        tf.train.Checkpoint(net=late).read(path).expect_partial()
        late.build()
        return [late.w, late.inner.scale]


@program()
def a_root_object(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        net = network(tf)
        path = tf.train.Checkpoint(net, extra=tf.Variable(4.0)).write(os.path.join(folder, "weights"))
        other = network(tf)
        other.w.assign([0.0, 0.0])
        tf.train.Checkpoint(other).read(path).expect_partial()
        return [other.w, "extra/.ATTRIBUTES/VARIABLE_VALUE" in dict(names(tf, path))]


@program()
def what_does_not_fit(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(step=tf.Variable(1)).save(os.path.join(folder, "ckpt"))
        Checkpoint, Variable = tf.train.Checkpoint, tf.Variable
        return [
            raises(lambda: Checkpoint(x=Variable(1.0)).restore(path).assert_consumed()),
            raises(lambda: Checkpoint(x=Variable(1.0)).restore(path).assert_existing_objects_matched()),
            raises(lambda: Checkpoint(step=Variable([1, 2])).restore(path)),
            raises(lambda: Checkpoint(step=Variable(1.5)).restore(path)),
            raises(lambda: Checkpoint(step=1)),
            raises(lambda: Checkpoint(step=Variable(1)).restore(os.path.join(folder, "none"))),
            raises(lambda: Checkpoint(step=Variable(1)).restore(None).assert_consumed()),
            raises(lambda: tf.train.load_variable(path, "none")),
            tf.train.latest_checkpoint(os.path.join(folder, "none")) is None,
            tf.train.get_checkpoint_state(os.path.join(folder, "none")) is None,
        ]


@program()
def a_manager_keeps_the_last_ones(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        step = tf.Variable(0)
        checkpoint = tf.train.Checkpoint(step=step)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2, checkpoint_name="model")
        saved = []
        for _ in range(3):
            step.assign_add(1)
            saved.append(os.path.basename(manager.save()))
        saved.append(os.path.basename(manager.save(checkpoint_number=77)))
        again = tf.train.CheckpointManager(
            tf.train.Checkpoint(step=tf.Variable(0)), folder, max_to_keep=2, checkpoint_name="model"
        )
        indices = sorted(name for name in os.listdir(folder) if name.endswith(".index"))
        state = tf.train.get_checkpoint_state(folder)
        step.assign(0)
        restored = manager.restore_or_initialize()
        return [
            saved,
            [os.path.basename(path) for path in manager.checkpoints],
            [os.path.basename(path) for path in again.checkpoints],
            os.path.basename(manager.latest_checkpoint),
            os.path.basename(state.model_checkpoint_path),
            len(state.all_model_checkpoint_paths),
            indices,
            os.path.basename(restored),
            step,
        ]


@program()
def a_manager_counts_steps(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        step, started = tf.Variable(0), []
        manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(step=step),
            folder,
            max_to_keep=None,
            step_counter=step,
            checkpoint_interval=2,
            init_fn=lambda: started.append(1),
        )
        first = manager.restore_or_initialize()
        saved = []
        for _ in range(5):
            path = manager.save()
            saved.append(path and os.path.basename(path))
            step.assign_add(1)
        return [
            first,
            started,
            saved,
            len(manager.checkpoints),
            raises(lambda: tf.train.CheckpointManager(tf.train.Checkpoint(), folder, max_to_keep=0)),
            raises(lambda: tf.train.CheckpointManager(tf.train.Checkpoint(), folder, 1, checkpoint_interval=2)),
        ]


@program()
def lists_and_dicts_that_are_filled_after_the_restore(tf, np):
    saved, results = tf.Module(), []
    saved.listed = [tf.Variable(1.0), tf.Variable(2.0)]
    saved.named = {"a": tf.Variable(3.0), "deep": [tf.Variable(4.0)]}
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(layers=saved).write(os.path.join(folder, "c"))
        for is_set_later in (True, False):
            layers = tf.Module()
            if is_set_later:
                tf.train.Checkpoint(layers=layers).read(path)
            layers.listed, layers.named = [], {}
            if not is_set_later:
                tf.train.Checkpoint(layers=layers).read(path)
            layers.listed.append(tf.Variable(0.0))
            layers.listed.extend([tf.Variable(0.0), tf.Variable(7.0)])
            layers.named["a"] = tf.Variable(0.0)
            layers.named["deep"] = []
            layers.named["deep"].append(tf.Variable(0.0))
            layers.named["a"].assign_add(1.0)
            layers.named.update(new=tf.Variable(8.0))
            flat = [*layers.listed, layers.named["a"], *layers.named["deep"], layers.named["new"]]
            results.append([variable.numpy() for variable in flat])
    return results


@program()
def iterators_of_datasets(tf, np):
    def made():
        plain = iter(tf.data.Dataset.range(10))
        batches = iter(tf.data.Dataset.range(10).map(lambda x: (x * x, x)).batch(2))
        return plain, batches, tf.train.Checkpoint(plain=plain, nested=[batches], step=tf.Variable(0))

    plain, batches, checkpoint = made()
    with tempfile.TemporaryDirectory() as folder:
        results = [next(plain), next(plain), next(batches)]
        path = checkpoint.save(os.path.join(folder, "ckpt"))
        results += [next(plain), next(batches)]
        checkpoint.restore(path).assert_consumed()
        results += [next(plain), next(batches)]
        for _ in plain:
            pass
        checkpoint.restore(path)
        results += [list(plain), raises(lambda: next(plain))]
        at_the_end = checkpoint.save(os.path.join(folder, "ckpt"))
        plain, batches, checkpoint = made()
        checkpoint.restore(at_the_end).assert_existing_objects_matched()
        results += [next(batches), raises(lambda: next(plain))]
        taken = tf.function(lambda: next(batches)[0])
        results += [taken()]
        path = checkpoint.save(os.path.join(folder, "ckpt"))
        results += [taken()]
        checkpoint.restore(path)
        return [*results, taken(), [entry.numpy() for entry, _ in batches]]
