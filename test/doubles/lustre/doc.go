// Package lustre holds the doubles of Lustre: mkfs.lustre and tunefs.lustre over a real ext4, and a replacement for the kernel's part, with
// mount.lustre, lctl, lfs and lnetctl. The README of the doubles describes their limits.
package lustre
