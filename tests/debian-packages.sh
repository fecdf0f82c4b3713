#!/bin/bash
# Installs the Debian packages that the build and the tests need, as far as they are missing; with the
# argument e2e or bench, also what those need.
set -euo pipefail

missing=()
need() { # PACKAGE COMMAND…: the package is needed unless the command succeeds
    local package=$1
    shift
    "$@" > /dev/null 2>&1 || missing+=("$package")
}

need build-essential cc --version
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
need curl curl --version
need python3 python3 --version
need python3-venv python3 -c 'import ensurepip, venv'
need nodejs node --version
need npm npm --version
need faketime command -v faketime
need openssl openssl version
need prometheus promtool --version
need redis-server redis-server --version
need wget wget --version
need unzip unzip -v
need p7zip-full 7z --help
need libarchive-tools bsdtar --version

case ${1:-} in
    e2e)
        need aria2 aria2c --version
        need chromium chromium --version
        need haproxy test -x /usr/sbin/haproxy
        need nginx-light test -x /usr/sbin/nginx
        need rclone rclone version
        ;;
    bench)
        need nginx-light test -x /usr/sbin/nginx
        need wrk command -v wrk
        ;;
esac

if ((${#missing[@]})); then
    if [[ $(id -u) -eq 0 ]]; then
        sudo=()
    else
        sudo=(sudo)
    fi
    if ! command -v apt-get > /dev/null || { ((${#sudo[@]})) && ! command -v sudo > /dev/null; }; then
        echo "please install: ${missing[*]}" >&2
        exit 1
    fi
    echo "installing the Debian packages ${missing[*]}"
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

if ! command -v cargo > /dev/null; then
    echo "please install Rust, at least $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml): https://rustup.rs" >&2
    exit 1
fi
