"""Datasets of files: lines, records, examples, CSV."""

import gzip
import tempfile
from pathlib import Path

from conformance.probes import elements, message, raises
from conformance.program import program


def folder():
    return Path(tempfile.mkdtemp())


@program()
def lines(tf, np):
    path = folder()
    (path / "a.txt").write_bytes(b"a\nb\r\n\nc")
    (path / "b.txt").write_bytes(b"d\ne\n")
    with gzip.open(path / "c.gz", "wb") as file:
        file.write(b"x\ny\n")
    names = [str(path / "a.txt"), str(path / "b.txt")]
    data = tf.data.TextLineDataset(names)
    return [
        elements(data),
        [repr(data), data.cardinality()],
        elements(tf.data.TextLineDataset(names[0])),
        elements(tf.data.TextLineDataset(tf.data.Dataset.from_tensor_slices(names))),
        elements(tf.data.TextLineDataset(names, num_parallel_reads=2)),
        elements(tf.data.TextLineDataset(str(path / "c.gz"), compression_type="GZIP")),
        elements(data.skip(1).filter(lambda line: line != b"").batch(2)),
        elements(tf.data.Dataset.from_tensor_slices(names).interleave(tf.data.TextLineDataset, cycle_length=2)),
        raises(lambda: elements(tf.data.TextLineDataset(str(path / "no")))),
        raises(lambda: elements(tf.data.TextLineDataset(names, compression_type="FOO"))),
        message(lambda: tf.data.TextLineDataset(3)),
        [name[-6:] for name in elements(tf.data.Dataset.list_files(str(path / "*.txt"), shuffle=False))],
        sorted(name[-6:] for name in elements(tf.data.Dataset.list_files([str(path / "*.txt")]))),
        raises(lambda: tf.data.Dataset.list_files(str(path / "*.no")), "No files matched pattern"),
    ]


def example(tf):
    train = tf.train
    return train.Example(
        features=train.Features(
            feature={
                "x": train.Feature(float_list=train.FloatList(value=[1.5, 2.5])),
                "n": train.Feature(int64_list=train.Int64List(value=[-3])),
                "s": train.Feature(bytes_list=train.BytesList(value=[b"ab", b"c"])),
            }
        )
    )


@program()
def records(tf, np):
    path = str(folder() / "a")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"first")
        writer.write(b"")
        writer.write("third")
    data = tf.data.TFRecordDataset(path)
    compressed = []
    for kind in ("GZIP", "ZLIB"):
        with tf.io.TFRecordWriter(path + kind, tf.io.TFRecordOptions(compression_type=kind)) as writer:
            writer.write(b"text")
        compressed.append(elements(tf.data.TFRecordDataset([path + kind], compression_type=kind)))
    content = Path(path).read_bytes()
    Path(path + "bad").write_bytes(content[:14] + b"?" + content[15:])
    Path(path + "cut").write_bytes(content[:-3])
    return [
        [content.hex(), elements(data), repr(data)],
        compressed,
        elements(tf.data.TFRecordDataset([path, path], num_parallel_reads=2)),
        raises(lambda: elements(tf.data.TFRecordDataset(path + "bad")), "corrupted record at 12"),
        raises(lambda: elements(tf.data.TFRecordDataset(path + "cut")), "truncated record at 37"),
        raises(lambda: elements(tf.data.TFRecordDataset(path + "no"))),
        raises(lambda: tf.io.TFRecordWriter(str(folder() / "no" / "a"))),
    ]


@program()
def messages_of_examples(tf, np):
    built = example(tf)
    again = tf.train.Example.FromString(built.SerializeToString())
    other = tf.train.Example()
    other.features.feature["k"].int64_list.value.extend([1, 2])
    return [
        built.SerializeToString(deterministic=True).hex(),
        [str(other), again == built, again == other, isinstance(again, tf.train.Example)],
        [list(again.features.feature["x"].float_list.value), again.features.feature["n"].WhichOneof("kind")],
    ]


@program()
def parsed_examples(tf, np):
    text = example(tf).SerializeToString()
    fixed, sequence = tf.io.FixedLenFeature, tf.io.FixedLenSequenceFeature

    def one(features, serialized=text):
        return tf.io.parse_single_example(serialized, features)

    return [
        one({"x": fixed([2], tf.float32), "n": fixed([], tf.int64), "s": fixed([2], tf.string)}),
        one({"x": fixed([2, 1], tf.float32)}),
        one({"q": fixed([], tf.float32, 7.0), "r": fixed([2], tf.int64, [7, 8]), "t": fixed([], tf.string, "no")}),
        one({"s": sequence([], tf.string, allow_missing=True), "q": sequence([], tf.int64, allow_missing=True)}),
        tf.io.parse_example([text, text], {"x": fixed([2], tf.float32), "n": fixed([], tf.int64)}),
        tf.io.parse_example(text, {"x": fixed([2], tf.float32)}),
        tf.io.parse_example(
            tf.constant([text, b""]), {"x": sequence([], tf.float32, allow_missing=True, default_value=-1.0)}
        ),
        raises(lambda: one({"x": fixed([3], tf.float32)}), "Key: x.  Can't parse serialized Example"),
        raises(lambda: one({"q": fixed([], tf.float32)}), "Feature: q (data type: float) is required but could not be"),
        raises(lambda: one({"x": fixed([], tf.int64)}), "Data types don't match. Data type: float but expected type"),
        raises(lambda: one({"x": fixed([2], tf.float32)}, b"garbage"), "Could not parse example input"),
        message(lambda: one({})),
    ]


@program()
def examples_of_a_file(tf, np):
    path = str(folder() / "a")
    train = tf.train
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(5):
            features = {
                "x": train.Feature(float_list=train.FloatList(value=[i, i + 0.5])),
                "y": train.Feature(int64_list=train.Int64List(value=[i])),
            }
            writer.write(train.Example(features=train.Features(feature=features)).SerializeToString())
    features = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    data = tf.data.TFRecordDataset(path).map(lambda text: tf.io.parse_single_example(text, features))
    pairs = data.map(lambda row: (row["x"] * 2.0, row["y"])).batch(2).prefetch(1)
    return [
        elements(pairs),
        elements(tf.data.TFRecordDataset(path).batch(3).map(lambda texts: tf.io.parse_example(texts, features)["y"])),
    ]


@program()
def fixed_length_records(tf, np):
    path = folder() / "a"
    path.write_bytes(bytes(range(10)))
    return [
        elements(tf.data.FixedLengthRecordDataset(str(path), 4, header_bytes=1, footer_bytes=1)),
        raises(lambda: elements(tf.data.FixedLengthRecordDataset(str(path), 4)), "not an exact multiple of the record"),
    ]


@program()
def csv_files(tf, np):
    path = folder() / "c.csv"
    path.write_text('a,b,c\n1,2.5,x\n3,,y\n5,6.5,"z,w"\n')

    def rows(size=2, **options):
        return tf.data.experimental.make_csv_dataset(str(path), size, shuffle=False, num_epochs=1, **options)

    forever = tf.data.experimental.make_csv_dataset(str(path), 2, label_name="b")
    return [
        elements(rows()),
        elements(rows(label_name="c")),
        elements(rows(select_columns=["a", "b"])),
        elements(rows(select_columns=[0, 2])),
        elements(rows(3, column_defaults=[0, 9.5, "q"])),
        elements(rows(column_names=["p", "q", "r"])),
        elements(rows(column_names=["p", "q", "r"], header=False)),
        elements(rows(na_value="x")),
        [str(forever.element_spec), forever.cardinality()],
        raises(lambda: elements(rows(column_defaults=[tf.int32, tf.float32, tf.string])), "Field 1 is required"),
        message(lambda: rows(label_name="zz")),
        raises(lambda: tf.data.experimental.make_csv_dataset(str(path) + "no", 2), "No files match `file_pattern`"),
    ]
