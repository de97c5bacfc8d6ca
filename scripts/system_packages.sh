#!/usr/bin/env bash
# Install the system packages named by "command=package" arguments whose command is missing.
# Uses apt-get as root or through sudo; otherwise prints the one line to type and fails.
set -euo pipefail
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" # daemons lie there, which is not on everybody's PATH
python=${PYTHON3:-python3}

check_python() {
  command -v "$python" >/dev/null 2>&1 || return 0
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' && return 0
  echo "$python is $("$python" -V 2>&1), 3.11 or newer is needed; name another: make PYTHON3=python3.12 ..." >&2
  exit 2
}

check_python
missing=()
for pair in "$@"; do
  command -v "${pair%%=*}" >/dev/null 2>&1 || missing+=("${pair#*=}")
done
# Debian and Ubuntu split the part of Python that makes virtual environments into a package of its own.
"$python" -c 'import ensurepip' >/dev/null 2>&1 || missing+=("$(basename "$python")-venv")
[ "${#missing[@]}" -eq 0 ] && exit 0

packages=$(printf '%s\n' "${missing[@]}" | sort -u | tr '\n' ' ')
packages=${packages% }
if ! command -v apt-get >/dev/null 2>&1; then
  echo "missing system packages; install what is here called, by Debian's names: $packages" >&2
  exit 2
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo -n)
  if ! sudo -n true 2>/dev/null; then
    echo "missing system packages; type as root: apt-get install -y --no-install-recommends $packages" >&2
    exit 2
  fi
fi
echo "installing system packages: $packages"
"${as_root[@]}" apt-get update -qq
# shellcheck disable=SC2086
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
check_python
