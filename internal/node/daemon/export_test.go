package daemon

// OpenAdapters opens the devices of a directory other than that of the node.
var OpenAdapters = openAdapters
