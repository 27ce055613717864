// Package vm tests the node binary on a Debian kernel under QEMU, with two NUMA nodes and NVMe disks that have serials, which neither a
// container nor a loop device has. The tests have the build tag vm; run.sh prepares the machine.
package vm
