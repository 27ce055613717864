package ext4

// WithoutReplay leaves the journal as it is (ext4(5), noload).
func (Format) WithoutReplay() []string { return []string{"ro", "noload"} }

// SpansDevices is false.
func (Format) SpansDevices() bool { return false }
