package options

// ofManagement8 lists the options of the management service of BeeGFS 8.
var ofManagement8 = append([]option{
	backendGives("db-file", absolutePath, "/var/lib/beegfs/mgmtd.sqlite"),
	operatorSets("log-target", oneOf("journald", "stderr"), "journald", "stderr"),
	userSets("log-level", oneOf("off", "error", "warn", "info", "debug", "trace"), "warn"),
	backendGives("beemsg-port", portNumber, "8008"),
	backendGives("grpc-port", portNumber, "8010"),
	operatorSets("port-shift", integer(0, 65535), "0", "0"),
	fieldSets("tls-disable", boolean, "false", "spec.beegfs.tls"),
	fieldSets("tls-cert-file", absolutePath, "/etc/beegfs/cert.pem", "spec.beegfs.tls").notNeeded(),
	fieldSets("tls-key-file", absolutePath, "/etc/beegfs/key.pem", "spec.beegfs.tls").notNeeded(),
	fieldSets("interfaces", commaList, "", interfacesField),
	userSets("ipv6-disable", boolean, "false").from("8.2.0"),
	userSets("connection-limit", integer(1, 65535), "12"),
	operatorSets("auth-disable", boolean, "false", "false"),
	backendGives("auth-file", absolutePath, "/etc/beegfs/conn.auth"),
	// With registration disabled, a server that the operator adds could never register.
	operatorSets("registration-disable", boolean, "false", "false"),
	// See ConsistentTimeouts.
	userSets("node-offline-timeout", timeSpan, "180s"),
	userSets("client-auto-remove-timeout", timeSpan, "30m"),
	// If the option is in the file, even as false, versions after 8.3.1 stop, because they do not have it (main of beegfs-rust, observed by
	// running it).
	leftOut("license-disable", boolean, "false", "").upTo("8.4.0"),
	fieldSets("license-cert-file", absolutePath, "/etc/beegfs/license.pem", "spec.beegfs.license").notNeeded(),
	operatorSets("license-lib-file", absolutePath, "/opt/beegfs/lib/libbeegfs_license.so", "/opt/beegfs/lib/libbeegfs_license.so"),
	userSets("max-blocking-threads", integer(1, 4096), "128"),
	userSets("quota-enable", boolean, "false"),
	userSets("quota-enforce", boolean, "false"),
	userSets("quota-update-interval", timeSpan, "30s"),
	userSets("quota-user-system-ids-min", integer(0, many), ""),
	userSets("quota-group-system-ids-min", integer(0, many), ""),
	namesFile("quota-user-ids-file"),
	namesFile("quota-group-ids-file"),
	userSets("quota-user-ids-range", idRange, ""),
	userSets("quota-group-ids-range", idRange, ""),
	operatorSets("daemonize", boolean, "false", "false"),
	operatorSets("daemonize-pid-file", absolutePath, "/run/beegfs/mgmtd.pid", "/run/beegfs/mgmtd.pid"),
}, poolLimits()...)

// dynamicLimits lists the options of a table with dynamic limits of capacity pools. All of them are set, or none.
var dynamicLimits = []string{
	"inodes-normal-threshold", "inodes-low-threshold", "space-normal-threshold", "space-low-threshold",
	"inodes-low", "inodes-emergency", "space-low", "space-emergency",
}

// poolLimits returns the limits of the capacity pools, in tables.
func poolLimits() []option {
	var all []option
	for table, values := range map[string][4]string{
		"cap-pool-meta-limits":    {"10M", "1M", "10GiB", "3GiB"},
		"cap-pool-storage-limits": {"10M", "1M", "512GiB", "10GiB"},
	} {
		for i, name := range []string{"inodes-low", "inodes-emergency", "space-low", "space-emergency"} {
			all = append(all, userSets(name, quantity, values[i]).inTable(table))
		}
	}
	for _, table := range []string{"cap-pool-dynamic-meta-limits", "cap-pool-dynamic-storage-limits"} {
		for _, name := range dynamicLimits {
			all = append(all, userSets(name, quantity, "").inTable(table))
		}
	}
	return all
}
