// Package lustre holds the doubles of Lustre: mkfs.lustre and tunefs.lustre over a real ext4, and what stands in for the kernel's part,
// with mount.lustre, lctl, lfs and lnetctl. The README of the doubles says how far they go.
package lustre
