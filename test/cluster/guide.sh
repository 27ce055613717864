#!/usr/bin/env bash
# Runs the very commands of docs/install.md, from the images to a first filesystem that is ready, on the test cluster with a registry of its own.
# Two things are put in the place of the page's, as a reader does: the registry, and the names of two nodes. Each line is printed before it runs.
# usage: guide.sh [--print]   --print prints the commands of the page as they are there   (CLUSTER as for up.sh)
set -euo pipefail
# shellcheck source=test/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# commands prints the blocks of commands of the numbered sections up to the first filesystem.
commands() {
  awk '/^## /{section = ($2 ~ /^[1-4]\.$/)} /^```/{block = ($0 == "```sh"); next} section && block' "$root_dir/docs/install.md"
}

text=$(commands)
for word in registry.example.com/team 'label node n1 n2 ' 'helm install ' 'kubectl apply '; do
  [[ $text == *"$word"* ]] || die "the commands of docs/install.md have no '$word': say here what stands in its place"
done
if [[ ${1:-} == --print ]]; then echo "$text"; exit 0; fi

use_cluster_tools
"$root_dir/tools/build.sh" --link "$root_dir/bin" helm >/dev/null
registry=$("$(dirname "$0")/registry.sh" up)
mapfile -t nodes < <(worker_nodes)
((${#nodes[@]} >= 2)) || die "docs/install.md needs two nodes, and the cluster $cluster has ${#nodes[@]} worker"
text=$(sed -E "s|registry\.example\.com/team|$registry/team|; s/\bn1\b/${nodes[0]}/g; s/\bn2\b/${nodes[1]}/g" <<<"$text")
cd "$root_dir"
export PATH=$root_dir/bin:$PATH KUBECONFIG=$kubeconfig
bash -evu -o pipefail <(echo "$text") 2>&1
