"""Verdicts on images beside decoders, in one run: `images.py [FOLDER]`.

MB of file a second of processor time, for each format: our verdict, the crates `image` and zune, and
Pillow, all on the same files of 40 KB to 3 MiB, those of FOLDER or, without one, made here: screens,
pictures and moving screens, each as encoders commonly write them. All decode whole, and moving pictures to
the last frame. Medians of five rounds.
"""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image, ImageDraw

ROUNDS = 5
SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")
# Megabytes a second that the verdict is to reach.
GOALS = {"image/png": 115, "image/jpeg": 57, "image/gif": 302, "image/webp": 28}


def picture(width, height, seed):
    """Soft shapes and fine grain, as a camera sees."""
    random.seed(seed)
    bands = []
    for _ in range(3):
        band = Image.new("L", (width, height), 128)
        for side, share in ((8, 0.6), (40, 0.3), (200, 0.15)):
            small = Image.frombytes("L", (side, side), random.randbytes(side * side))
            band = Image.blend(band, small.resize((width, height), Image.Resampling.BICUBIC), share)
        grain = Image.frombytes("L", (width, height), random.randbytes(width * height))
        bands.append(Image.blend(band, grain, 0.02))
    return Image.merge("RGB", bands)


def screen(width, height, seed, scroll=0):
    """A window with lines of text, some in colour."""
    random.seed(seed)
    lines = [
        (" ".join(str(random.getrandbits(random.randint(4, 40))) for _ in range(14)), random.choice(
            ("black", "navy", "darkred", "gray")))
        for _ in range(height // 6)
    ]  # fmt: skip
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, width, 28), fill="steelblue")
    draw.rectangle((0, 28, width // 6, height), fill="whitesmoke")
    for row in range((height - 40) // 12):
        text, colour = lines[(row + scroll) % len(lines)]
        draw.text((width // 6 + 12, 36 + row * 12), text, fill=colour)
    return image


def make(folder):
    photos = [picture(width, height, seed) for seed, (width, height) in enumerate([(640, 480), (1024, 768), (1600, 1200)])]
    screens = [screen(width, height, seed) for seed, (width, height) in enumerate([(1280, 720), (1920, 1080), (2560, 1440)])]
    for number, photo in enumerate(photos):
        for quality, sampling in ((75, "4:2:0"), (92, "4:4:4")):
            for progressive in (False, True):
                name = f"photo{number}-{quality}-{'progressive' if progressive else 'baseline'}.jpg"
                photo.save(folder / name, quality=quality, subsampling=sampling, progressive=progressive)
            photo.save(folder / f"photo{number}-{quality}.webp", quality=quality)
        photo.resize((640, 480)).save(folder / f"photo{number}.png")
        photo.resize((640, 480)).save(folder / f"photo{number}.gif")
    for number, shot in enumerate(screens):
        shot.save(folder / f"screen{number}.png")
        shot.convert("RGBA").save(folder / f"screen{number}-alpha.png", optimize=True)
        shot.quantize(64).save(folder / f"screen{number}-palette.png")
        shot.save(folder / f"screen{number}.jpg", quality=85)
        shot.save(folder / f"screen{number}.webp", lossless=True, method=3)
        shot.save(folder / f"screen{number}-lossy.webp", quality=80)
        shot.quantize(64).save(folder / f"screen{number}.gif")
    moving = [screen(1280, 720, 7, scroll).quantize(32) for scroll in range(12)]
    moving[0].save(folder / "moving.gif", save_all=True, append_images=moving[1:])
    moving = [image.convert("RGB") for image in moving[:6]]
    moving[0].save(folder / "moving.webp", save_all=True, append_images=moving[1:], quality=75)


def is_measured(path):
    if not path.is_file() or not 40_000 <= path.stat().st_size <= 3 << 20:
        return False
    with open(path, "rb") as file:
        return file.read(8).startswith(SIGNATURES)


def by_pillow(path):
    with Image.open(path) as image:
        for frame in range(getattr(image, "n_frames", 1)):
            image.seek(frame)
            image.load()


def pillow(paths):
    """Microseconds of processor time for all files."""
    rounds = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for path in paths:
            by_pillow(path)
        rounds.append(time.process_time() - begun)
    return statistics.median(rounds) * 1e6


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else made)
        if len(sys.argv) == 1:
            make(folder)
        paths = sorted(path for path in folder.rglob("*") if is_measured(path))
        command = ["cargo", "bench", "--quiet", "--locked", "--bench", "images", "--", "rates", *map(str, paths)]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(f"{'MB of file a second of CPU':32}{'verdict':>9}{'goal':>9}{'image':>9}{'zune':>9}{'Pillow':>9}")
        for line in told.splitlines():
            format, *fields = line.split()
            taken = {name: int(value) for name, value in (field.split("=") for field in fields)}
            files, size = taken.pop("files"), taken.pop("bytes")
            of_format = [path for path in paths if "image/" + kind(path) == format]
            assert len(of_format) == files
            taken["Pillow"] = pillow(of_format)
            rates = {name: f"{size / microseconds:9.0f}" for name, microseconds in taken.items()}
            columns = [rates["verdict"], f"{GOALS[format]:9}", *(rates.get(name, f"{'':9}") for name in ("image", "zune", "Pillow"))]
            print(f"{format:12}{files:4} files {size / 1e6:6.1f} MB  {''.join(columns)}")


def kind(path):
    """The format, by content."""
    with open(path, "rb") as file:
        head = file.read(8)
    return ("png", "jpeg", "gif", "webp")[[head.startswith(signature) for signature in SIGNATURES].index(True)]


if __name__ == "__main__":
    main()
