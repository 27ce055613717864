// Package podspec makes the pods, DaemonSets, Jobs and volumes that the filesystems have in common.
package podspec
