"""`tf.io`, the decoding of `tf.image`, and `tf.audio`: files, strings of bytes, images and sound."""

import os
import tempfile

from conformance.probes import raises
from conformance.program import program


@program()
def files_and_folders(tf, np):
    gfile = tf.io.gfile
    with tempfile.TemporaryDirectory() as folder:

        def at(*parts):
            return gfile.join(folder, *parts)

        with gfile.GFile(at("a.txt"), "w") as file:
            file.write("hello\nworld")
        gfile.makedirs(at("x", "y"))
        gfile.makedirs(at("x", "y"))
        gfile.mkdir(at("m"))
        gfile.copy(at("a.txt"), at("b.txt"))
        again = raises(lambda: gfile.copy(at("a.txt"), at("b.txt")))
        gfile.copy(at("a.txt"), at("b.txt"), overwrite=True)
        gfile.rename(at("b.txt"), at("c.txt"))
        listed = sorted(gfile.listdir(folder))
        walked = [[os.path.relpath(a, folder), sorted(b), sorted(c)] for a, b, c in gfile.walk(folder)]
        result = [
            again,
            listed,
            sorted(walked),
            sorted(os.path.basename(path) for path in gfile.glob([at("*.txt"), at("x*")])),
            [gfile.exists(at("a.txt")), gfile.exists(at("none")), gfile.isdir(folder), gfile.isdir(at("a.txt"))],
            [gfile.stat(at("a.txt")).length, gfile.stat(at("a.txt")).is_directory],
            raises(lambda: gfile.stat(at("none"))),
            raises(lambda: gfile.mkdir(at("no", "such"))),
            raises(lambda: gfile.rename(at("a.txt"), at("c.txt"))),
            raises(lambda: gfile.remove(at("none"))),
            raises(lambda: gfile.remove(at("m"))),
            raises(lambda: gfile.listdir(at("none"))),
            raises(lambda: gfile.rmtree(at("none"))),
        ]
        gfile.rmtree(at("x"))
        gfile.remove(at("c.txt"))
        return [*result, sorted(gfile.listdir(folder))]


@program()
def a_file_is_read_and_written(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.txt")
        tf.io.write_file(os.path.join(folder, "sub", "b.bin"), tf.constant(b"\x00\x01\xff"))
        with tf.io.gfile.GFile(path, "w") as file:
            file.write("hello\nworld\nä\n")
        file = tf.io.gfile.GFile(path)
        lines = [file.readline(), file.read(3), file.tell(), file.size(), list(file)]
        file.seek(0)
        return [
            lines,
            file.readlines(),
            list(tf.io.gfile.GFile(path, "rb").read()),
            tf.io.read_file(tf.constant(path)),
            list(tf.io.read_file(os.path.join(folder, "sub", "b.bin")).numpy()),
            [os.path.basename(name).decode() for name in tf.io.matching_files(folder + "/*.txt").numpy()],
            raises(lambda: tf.io.gfile.GFile(path).write("x")),
            raises(lambda: tf.io.gfile.GFile(path, "q")),
            raises(lambda: tf.io.gfile.GFile(path + "none").read()),
            raises(lambda: tf.io.read_file(path + "none"), "No such file or directory"),
            raises(lambda: tf.io.read_file([path, path])),
        ]


@program()
def strings_of_bytes(tf, np):
    io = tf.io
    four = tf.constant([b"\x01\x02\x03\x04", b"\x01\x02\x03\x05"])
    return [
        io.decode_raw(four, tf.uint8),
        io.decode_raw(four, tf.int16, little_endian=False),
        io.decode_raw(tf.constant(b"\x01\x02\x03"), tf.int16, fixed_length=4),
        io.decode_raw(np.array([1.5, -2.0], np.float32).tobytes(), tf.float32),
        raises(lambda: io.decode_raw(b"\x01\x02\x03", tf.int16), "length 3 that is not a multiple of 2"),
        io.encode_base64(tf.constant([b"hi??>>", b"a"])),
        io.encode_base64(tf.constant([b"hi??>>", b"a"]), pad=True),
        io.decode_base64(tf.constant(["aGk_Pz4-", "YQ"])),
        raises(lambda: io.decode_base64("%%%"), "Invalid character found in base64."),
    ]


@program()
def lines_of_fields(tf, np):
    decode = tf.io.decode_csv
    required = tf.constant([], tf.float32)
    return [
        decode(["1,2.5,a", "3,4.5,b"], [[0], [0.0], [""]]),
        decode("4,,b", [0, 1.5, "c"]),
        tf.as_string([1, 2]),
        decode("1,,a", [[0], [7.0], tf.constant([], tf.string)]),
        decode('"a,b";2', [[""], [0]], field_delim=";"),
        decode("1,2,3", [[0], [0]], select_cols=[0, 2]),
        decode("NA,2", [[5], [0]], na_value="NA"),
        raises(lambda: decode("1,", [[0], required]), "Field 1 is required but missing in record 0!"),
        raises(lambda: decode("1,2,3", [[0], [0]]), "Expect 2 fields but have 3 in record 0"),
        raises(lambda: decode("x,2", [[0], [0]]), "Field 0 in record 0 is not a valid int32: x"),
    ]


@program()
def images_as_png(tf, np):
    colors = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5
    deep = np.arange(16, dtype=np.uint16).reshape(4, 4, 1) * 1000
    clear = np.arange(64, dtype=np.uint8).reshape(4, 4, 4) * 3
    decode, encode = tf.io.decode_png, tf.io.encode_png
    png = encode(colors)
    return [
        decode(png),
        decode(png, channels=1),
        decode(png, channels=4),
        decode(png, dtype=tf.uint16),
        decode(encode(deep), dtype=tf.uint16),
        decode(encode(deep)),
        decode(encode(clear)),
        decode(encode(clear), channels=3),
        decode(encode(colors[..., :1])),
        tf.image.decode_image(png, dtype=tf.float32),
        tf.image.decode_image(png, channels=1, expand_animations=False).shape,
        encode(np.zeros((2, 4, 4, 1), np.uint8)).shape,
        tf.image.decode_jpeg(png),
        tf.io.is_jpeg(png),
        raises(lambda: decode(png, channels=2), "`channels` must be 0, 1, 3 or 4 but got 2"),
        raises(lambda: decode(b"abc"), "Unknown image file format"),
        raises(lambda: decode([png, png])),
        raises(lambda: encode(tf.zeros([4, 4, 3]))),
        raises(lambda: encode(tf.zeros([4], tf.uint8))),
    ]


@program(atol=4.0)
def images_as_jpeg(tf, np):
    ramp = np.linspace(0, 255, 16).astype(np.uint8)
    image = np.stack([np.add.outer(ramp // 2, ramp // 2)] * 3, -1)
    jpeg = tf.io.encode_jpeg(image, quality=95)
    return [
        tf.cast(tf.io.decode_jpeg(jpeg), tf.float32),
        tf.cast(tf.image.decode_jpeg(jpeg, channels=1), tf.float32),
        tf.io.decode_jpeg(jpeg, ratio=2).shape,
        tf.cast(tf.io.decode_and_crop_jpeg(jpeg, [1, 2, 3, 4]), tf.float32),
        tf.io.extract_jpeg_shape(jpeg),
        tf.io.is_jpeg(jpeg),
        tf.image.decode_image(jpeg).dtype,
        raises(lambda: tf.io.encode_jpeg(tf.zeros([4, 4, 3]))),
    ]


@program()
def images_of_files_in_a_dataset(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            image = np.full((2, 2, 3), 10 * number, np.uint8)
            tf.io.write_file(os.path.join(folder, f"{number}.png"), tf.io.encode_png(image))

        def load(path):
            image = tf.image.decode_png(tf.io.read_file(path), channels=3)
            return tf.cast(image, tf.float32) / 255.0

        paths = [os.path.join(folder, f"{number}.png") for number in range(3)]
        dataset = tf.data.Dataset.from_tensor_slices(paths).map(load).batch(2)
        return list(dataset)


@program()
def sound(tf, np):
    wave = tf.audio.encode_wav(np.array([[0.0], [0.5], [-1.0], [0.25], [1.0]], np.float32), 8000)
    return [
        list(wave.numpy()),
        *tf.audio.decode_wav(wave),
        tf.audio.decode_wav(wave, desired_channels=2, desired_samples=7).audio,
        tf.audio.decode_wav(wave, desired_samples=2).audio,
        raises(lambda: tf.audio.decode_wav(b"abc")),
    ]
