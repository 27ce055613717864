package xfs

// WithoutReplay leaves the log as it is (xfs(5), norecovery).
func (Format) WithoutReplay() []string { return []string{"ro", "norecovery"} }

// SpansDevices is false: the mounts of a filesystem with an external log have the number of its data device.
func (Format) SpansDevices() bool { return false }
