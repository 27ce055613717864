#!/bin/bash
# Makes the control groups that kind's kubelet is told of. The root group of a machine has the threads of its kernel, which kind's own script
# takes for a mistake.
set -euo pipefail
for group in . kubelet kubelet.slice; do
  mkdir -p "/sys/fs/cgroup/$group"
  sed 's/^/+/; s/ / +/g' "/sys/fs/cgroup/$group/cgroup.controllers" > "/sys/fs/cgroup/$group/cgroup.subtree_control"
done
