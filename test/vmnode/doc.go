// Package vmnode tests the operator on a node that is a machine of its own: its kernel, its disks and their udev, its kubelet, and a real
// Lustre. The tests have the build tag vmnode; run.sh prepares the machine. Each continues where the one before has ended.
package vmnode
