package plan

// NewDevice is newDevice, which Decide asks about finished targets only.
var NewDevice = newDevice
