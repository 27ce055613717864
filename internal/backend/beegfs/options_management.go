package beegfs

// ofManagement8 are the options of the management service of BeeGFS 8.
var ofManagement8 = append([]option{
	given("db-file", path, "/var/lib/beegfs/mgmtd.sqlite"),
	fixed("log-target", oneOf("journald", "stderr"), "journald", "stderr"),
	free("log-level", oneOf("off", "error", "warn", "info", "debug", "trace"), "warn"),
	given("beemsg-port", port, "8008"),
	given("grpc-port", port, "8010"),
	fixed("port-shift", number(0, 65535), "0", "0"),
	ofField("tls-disable", boolean, "false", "spec.beegfs.tls"),
	ofField("tls-cert-file", path, "/etc/beegfs/cert.pem", "spec.beegfs.tls").notNeeded(),
	ofField("tls-key-file", path, "/etc/beegfs/key.pem", "spec.beegfs.tls").notNeeded(),
	ofField("interfaces", list, "", interfacesField),
	free("ipv6-disable", boolean, "false").from("8.2.0"),
	free("connection-limit", number(1, 65535), "12"),
	fixed("auth-disable", boolean, "false", "false"),
	given("auth-file", path, "/etc/beegfs/conn.auth"),
	// A server that the operator adds would never be taken up.
	fixed("registration-disable", boolean, "false", "false"),
	// See consistentTimeouts.
	free("node-offline-timeout", duration, "180s"),
	free("client-auto-remove-timeout", duration, "30m"),
	fixed("license-disable", boolean, "false", "false").upTo("8.4.0"),
	ofField("license-cert-file", path, "/etc/beegfs/license.pem", "spec.beegfs.licence").notNeeded(),
	fixed("license-lib-file", path, "/opt/beegfs/lib/libbeegfs_license.so", "/opt/beegfs/lib/libbeegfs_license.so"),
	free("max-blocking-threads", number(1, 4096), "128"),
	free("quota-enable", boolean, "false"),
	free("quota-enforce", boolean, "false"),
	free("quota-update-interval", duration, "30s"),
	free("quota-user-system-ids-min", number(0, many), ""),
	free("quota-group-system-ids-min", number(0, many), ""),
	noFile("quota-user-ids-file"),
	noFile("quota-group-ids-file"),
	free("quota-user-ids-range", idRange, ""),
	free("quota-group-ids-range", idRange, ""),
	fixed("daemonize", boolean, "false", "false"),
	fixed("daemonize-pid-file", path, "/run/beegfs/mgmtd.pid", "/run/beegfs/mgmtd.pid"),
}, limits()...)

// dynamicLimits are the options of a table of dynamic limits of capacity pools. All of them are set, or none.
var dynamicLimits = []string{
	"inodes-normal-threshold", "inodes-low-threshold", "space-normal-threshold", "space-low-threshold",
	"inodes-low", "inodes-emergency", "space-low", "space-emergency",
}

// limits are those of the capacity pools, in tables.
func limits() []option {
	var all []option
	for table, values := range map[string][4]string{
		"cap-pool-meta-limits":    {"10M", "1M", "10GiB", "3GiB"},
		"cap-pool-storage-limits": {"10M", "1M", "512GiB", "10GiB"},
	} {
		for i, name := range []string{"inodes-low", "inodes-emergency", "space-low", "space-emergency"} {
			all = append(all, free(name, quantity, values[i]).inTable(table))
		}
	}
	for _, table := range []string{"cap-pool-dynamic-meta-limits", "cap-pool-dynamic-storage-limits"} {
		for _, name := range dynamicLimits {
			all = append(all, free(name, quantity, "").inTable(table))
		}
	}
	return all
}
