"""Archives beyond the numbers of the first ZIP format: more than 65,535 files, more than 4 GiB.

ARCHIVE_FILES says how many small files there are; by default an archive has at most 100,000 in all.
"""

import os
import subprocess
import urllib.request
import zipfile

import pytest

GIB = 1 << 30
MANY = int(os.environ.get("ARCHIVE_FILES", "70000"))


@pytest.fixture(scope="module")
def archive(start_demo, tmp_path_factory):
    """One archive of many small files, a sparse one of 5 GiB among them, as it was received."""
    store = tmp_path_factory.mktemp("store")
    for number in range(MANY):
        path = store / f"t__1/small/{number // 1000:02}/{number:05}.txt"
        if number % 1000 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"{number}\n")
    with open(store / "t__1/large.bin", "wb") as file:
        file.truncate(5 * GIB)
        file.seek(5 * GIB - 4)
        file.write(b"end\n")
    demo = start_demo(store=store, daily_bytes="10 GiB")
    request = urllib.request.Request(f"{demo.url}/v1/trials/t__1/archive")
    request.add_header("Authorization", f"Bearer {demo.keys['read_only']}")
    path = tmp_path_factory.mktemp("archive") / "t.zip"
    with urllib.request.urlopen(request, timeout=60) as answer, open(path, "wb") as file:
        length = int(answer.headers["Content-Length"])
        while chunk := answer.read(1 << 20):
            # Sparse as what it holds, so that the test needs little of the disk.
            if chunk.count(0) == len(chunk):
                file.seek(len(chunk), 1)
            else:
                file.write(chunk)
    assert path.stat().st_size == length > 5 * GIB
    assert demo.settled(60)["used_bytes"] == length
    return path


def test_python_reads_it(archive):
    with zipfile.ZipFile(archive) as opened:
        assert len(opened.namelist()) == MANY + 1
        assert opened.testzip() is None
        assert opened.read("small/69/69999.txt") == b"69999\n"
        assert opened.getinfo("large.bin").file_size == 5 * GIB


@pytest.mark.parametrize("command", [["unzip", "-tqq"], ["7z", "t", "-bso0", "-bsp0"], ["bsdtar", "-tf"]])
def test_it_is_opened_by(archive, command):
    subprocess.run([*command, archive], check=True, stdout=subprocess.DEVNULL, timeout=240)
