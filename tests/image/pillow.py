"""Pillow behind pipes: first it writes small images that it made, then it loads what it is sent.

A file is four bytes of length, the highest first, and its bytes; an empty one ends the images. The answer to
each file is a line of JSON, `{"size": [W, H], "frames": N, "error": null}`: the frames that load, and what
goes wrong with the next one if that is not the end.
"""

import io
import json
import sys
import warnings

from PIL import Image

# A warning is as good as an error to whoever only shows what loads without one.
warnings.simplefilter("error")


def picture(step=0):
    image = Image.new("RGB", (11, 9))
    image.putdata([((x * 23 + step * 60) % 256, (y * 29) % 256, (x * y * 7) % 256) for y in range(9) for x in range(11)])
    return image


def images():
    still, frames = picture(), [picture(step) for step in range(3)]
    clear = still.copy()
    clear.putalpha(picture(2).convert("L"))
    animated = {"save_all": True, "append_images": frames[1:], "duration": 50}
    yield still, "PNG", {}
    yield clear, "PNG", {}
    yield still.quantize(16), "PNG", {}
    yield still.convert("1"), "PNG", {}
    yield frames[0], "PNG", animated
    yield still, "JPEG", {"quality": 60}
    yield still, "JPEG", {"quality": 90, "subsampling": 0, "progressive": True}
    yield still.convert("L"), "JPEG", {"restart_marker_blocks": 1}
    yield still.convert("CMYK"), "JPEG", {}
    yield still, "GIF", {}
    yield frames[0].quantize(8), "GIF", animated
    yield still, "WEBP", {"quality": 50}
    yield clear, "WEBP", {"quality": 50}
    yield clear, "WEBP", {"lossless": True}
    yield frames[0], "WEBP", animated
    yield frames[0], "WEBP", animated | {"lossless": True}


def load(file):
    answer = {"size": [0, 0], "frames": 0, "error": None}
    try:
        with Image.open(io.BytesIO(file)) as image:
            while True:
                image.load()
                answer["size"] = image.size
                answer["frames"] += 1
                image.seek(answer["frames"])
    except EOFError:
        pass
    except Exception as error:  # whatever it is, it does not load
        answer["error"] = f"{type(error).__name__}: {error}"
    return answer


def main():
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    for image, format, options in images():
        file = io.BytesIO()
        image.save(file, format, **options)
        sink.write(len(file.getvalue()).to_bytes(4, "big") + file.getvalue())
    sink.write(bytes(4))
    sink.flush()
    while length := source.read(4):
        answer = load(source.read(int.from_bytes(length, "big")))
        sink.write(json.dumps(answer).encode() + b"\n")
        sink.flush()


if __name__ == "__main__":
    main()
