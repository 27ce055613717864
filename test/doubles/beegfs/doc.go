// Package beegfs holds the doubles of BeeGFS 7 and 8: programs that replace beegfs-mgmtd, beegfs-meta, beegfs-storage, beegfs-ctl and
// beegfs if the real ones are not available, and that refuse what the real ones refuse. README.md describes their limits.
package beegfs
