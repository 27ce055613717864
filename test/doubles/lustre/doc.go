// Package lustre holds the doubles of Lustre's programs for local filesystems: mkfs.lustre and tunefs.lustre over a real ext4. The README
// of the doubles says how far they go.
package lustre
