// Package beegfs holds the doubles of BeeGFS 7 and 8: programs that stand in for beegfs-mgmtd, beegfs-meta, beegfs-storage, beegfs-ctl
// and beegfs where the real ones are not at hand, and that refuse what the real ones refuse. README.md says how far they go.
package beegfs
