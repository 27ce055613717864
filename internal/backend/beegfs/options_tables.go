package beegfs

// option is one option of a daemon.
//
// Where the tables are from: names are those of Config::loadDefaults and AbstractConfig::loadDefaults, types and ranges those of
// applyConfigMap and initImplicitVals beside them, values those of the configuration file that is shipped and, where that has none, those
// of loadDefaults:
//
//	mgmtd 7    mgmtd/source/app/config/Config.cpp, common/.../AbstractConfig.cpp, beegfs-mgmtd.conf       (7.4.6; changes since 7.4.0)
//	meta       meta/source/app/config/Config.cpp, common/.../AbstractConfig.cpp, beegfs-meta.conf         (7.4.6, 8.3.1; changes since 7.4.0)
//	storage    storage/source/app/config/Config.cpp, common/.../AbstractConfig.cpp, beegfs-storage.conf   (7.4.6, 8.3.1; changes since 7.4.0)
//	client     client_module/source/app/config/Config.c, beegfs-client.conf                               (7.4.6, 8.3.1; changes since 7.4.0)
//	mgmtd 8    mgmtd/src/config.rs, mgmtd/src/cap_pool.rs, mgmtd/assets/beegfs-mgmtd.toml                  (8.3.1; changes since 8.0.0)
//
// A version that is newer than these is taken to know what the newest of its series knows. testdata/options-* has the same facts as plain
// lists, by version.
type option struct {
	name string
	kind kind
	// shipped is the value in BeeGFS's own configuration file, or the compiled one.
	shipped string
	// ours takes the place of shipped where it is set, and always in an option of the operator's.
	ours string
	// operators is true when the operator sets it, and no user may.
	operators bool
	// needed is true when the caller of render has to give a value.
	needed bool
	// field of the spec that sets it, empty when there is none.
	field string
	// file is true when it names something that a user can't bring into the pod.
	file bool
	// unwritten is true for an option that is an argument of the daemon, and never in its file.
	unwritten bool
	// table of TOML that holds it.
	table string
	// since and until are the versions that know it: from the one, and before the other.
	since, until string
}

// standing is the value where neither the caller nor the user gives one.
func (o option) standing() string {
	if o.operators || o.ours != "" {
		return o.ours
	}
	return o.shipped
}

func (o option) from(version string) option { o.since = version; return o }
func (o option) upTo(version string) option { o.until = version; return o }
func (o option) orElse(value string) option { o.ours = value; return o }
func (o option) notNeeded() option          { o.needed = false; return o }
func (o option) inTable(table string) option {
	o.table = table
	o.name = table + "-" + o.name
	return o
}

// free may be set by a user.
func free(name string, k kind, shipped string) option {
	return option{name: name, kind: k, shipped: shipped}
}

// fixed has the operator's value, unless the caller of render gives another.
func fixed(name string, k kind, shipped, ours string) option {
	return option{name: name, kind: k, shipped: shipped, ours: ours, operators: true}
}

// given is set by the caller of render.
func given(name string, k kind, shipped string) option {
	return option{name: name, kind: k, shipped: shipped, operators: true, needed: true}
}

// ofField is set by the caller of render, from a field of the spec.
func ofField(name string, k kind, shipped, field string) option {
	return option{name: name, kind: k, shipped: shipped, field: field, needed: true}
}

// noFile names a file, a directory or a socket that no pod has.
func noFile(name string) option {
	return option{name: name, kind: path, operators: true, file: true}
}

// optionsOf are the options that a daemon of a version knows, by name.
func optionsOf(daemon, version string) map[string]option {
	tables := [][]option{ofServers, ofServer[daemon]}
	switch {
	case inTOML(daemon, version):
		tables = [][]option{ofManagement8}
	case daemon == "client":
		tables = [][]option{ofClient}
	}
	options := map[string]option{}
	for _, table := range tables {
		for _, o := range table {
			if (o.since == "" || !before(version, o.since)) && (o.until == "" || before(version, o.until)) {
				options[o.name] = o
			}
		}
	}
	return options
}

// port is a port of TCP or UDP.
var port = number(1, 65535)

const (
	interfacesField = "spec.network.interfaces"
	rdmaField       = "spec.network.rdma"
)

// ofServers are the options that mgmtd of BeeGFS 7, and meta and storage of both, have in common. That of the daemon's own table with the
// same name takes its place.
var ofServers = []option{
	{name: "cfgFile", kind: path, operators: true, unwritten: true},
	fixed("logType", oneOf("logfile", "syslog"), "logfile", "logfile").upTo("8.0.0"),
	fixed("logType", oneOf("logfile", "syslog"), "syslog", "logfile").from("8.0.0"),
	free("logLevel", number(0, 5), "3"),
	free("logNoDate", boolean, "false"),
	free("logNumLines", number(1, many), "50000"),
	free("logNumRotatedFiles", number(0, many), "5"),

	fixed("connPortShift", number(0, 65535), "0", "0"),
	fixed("connClientPortUDP", port, "8004", "8004").upTo("8.0.0"),
	fixed("connStoragePortUDP", port, "8003", "8003").upTo("8.0.0"),
	fixed("connStoragePortTCP", port, "8003", "8003").upTo("8.0.0"),
	fixed("connMetaPortUDP", port, "8005", "8005").upTo("8.0.0"),
	fixed("connMetaPortTCP", port, "8005", "8005").upTo("8.0.0"),
	fixed("connMonPortUDP", port, "8007", "8007").upTo("8.0.0"),
	fixed("connHelperdPortTCP", port, "8006", "8006").upTo("8.0.0"),
	given("connMgmtdPortUDP", port, "8008").upTo("8.0.0"),
	given("connMgmtdPortTCP", port, "8008").upTo("8.0.0"),
	fixed("connClientPort", port, "8004", "8004").from("8.0.0"),
	fixed("connStoragePort", port, "8003", "8003").from("8.0.0"),
	fixed("connMetaPort", port, "8005", "8005").from("8.0.0"),
	fixed("connMonPort", port, "8007", "8007").from("8.0.0"),
	given("connMgmtdPort", port, "8008").from("8.0.0"),

	ofField("connUseRDMA", boolean, "true", rdmaField),
	free("connBacklogTCP", number(1, many), "128"),
	free("connMaxInternodeNum", number(1, 65535), "6"),
	free("connFallbackExpirationSecs", number(0, many), "900"),
	free("connTCPRcvBufSize", number(0, many), "0"),
	free("connUDPRcvBufSize", number(0, many), "0"),
	free("connRDMABufSize", number(4096, many), "8192"),
	free("connRDMABufNum", number(3, many), "70"),
	free("connRDMATypeOfService", number(0, 255), "0"),
	noFile("connNetFilterFile"),
	noFile("connTcpOnlyFilterFile"),
	given("connAuthFile", path, "").upTo("8.0.0"),
	given("connAuthFile", path, "/etc/beegfs/conn.auth").from("8.0.0"),
	fixed("connDisableAuthentication", boolean, "false", "false"),
	free("connRestrictOutboundInterfaces", boolean, "false").from("7.4.1"),
	free("connNoDefaultRoute", networks, "0.0.0.0/0").from("7.4.1").upTo("8.2.0"),
	free("connNoDefaultRoute", networks, "::/0").from("8.2.0"),
	free("connDisableIPv6", boolean, "false").from("8.2.0"),
	free("connMessagingTimeouts", numbers(3), "0,0,0"),
	free("connRDMATimeouts", numbers(3), "0,0,0"),
	ofField("connInterfacesFile", path, "", interfacesField),
	fixed("connInterfacesList", text, "", ""),

	given("sysMgmtdHost", text, ""),
	free("sysUpdateTargetStatesSecs", number(0, many), "0"),
	// Less than 30 ends the daemon. See consistentTimeouts.
	free("sysTargetOfflineTimeoutSecs", number(30, many), "180"),
	free("quotaEnableEnforcement", boolean, "false"),
	// A directory whose disk is not mounted must never become a new, empty one: node run initialises, once and on record.
	fixed("storeAllowFirstRunInit", boolean, "true", "false"),
	fixed("runDaemonized", boolean, "true", "false"),
	fixed("pidFile", path, "", ""),
}

// ofData are the options that meta and storage have in common.
var ofData = []option{
	// BeeGFS's own check of the device does not start where a mount is private to the container; node run proves the disk instead.
	fixed("storeFsUUID", text, "", ""),
	// Any of these three gives a thread the CPUs of a whole NUMA node, whatever node run has pinned the daemon to; and the daemon ends
	// where its cpuset has none of them.
	fixed("tuneBindToNumaZone", text, "", ""),
	fixed("tuneWorkerNumaAffinity", boolean, "false", "false"),
	fixed("tuneListenerNumaAffinity", boolean, "false", "false"),
	free("tuneListenerPrioShift", number(-20, 20), "-1"),
	free("tuneNumStreamListeners", number(1, 1024), "1"),
	free("tuneProcessFDLimit", number(0, many), "50000"),
	free("tuneUsePerUserMsgQueues", boolean, "false"),
	free("tuneUseAggressiveStreamPoll", boolean, "false"),
	free("tuneNumResyncSlaves", number(1, 1024), "12"),
	free("tuneChunkBalanceQueueLimit", number(1, many), "100000").from("8.2.0"),
}

// ofServer are the options of one server alone; mgmtd is that of BeeGFS 7.
var ofServer = map[string][]option{
	"mgmtd": {
		fixed("sysMgmtdHost", text, "", ""),
		// The management service never uses RDMA.
		fixed("connUseRDMA", boolean, "false", "false"),
		free("logLevel", number(0, 5), "2"),
		fixed("logStdFile", path, "/var/log/beegfs-mgmtd.log", ""),
		given("storeMgmtdDirectory", path, ""),
		// A server that the operator adds would never be taken up.
		fixed("sysAllowNewServers", boolean, "true", "true"),
		fixed("sysAllowNewTargets", boolean, "true", "true"),
		free("tuneNumWorkers", number(1, 4096), "4"),
		free("tuneNumQuotaWorkers", number(1, 4096), "8"),
		free("tuneClientAutoRemoveMins", number(5, many, "0"), "30"),
		free("tuneProcessFDLimit", number(0, many), "10000"),
		free("tuneMetaDynamicPools", boolean, "true"),
		free("tuneMetaSpaceLowLimit", size(0), "10G"),
		free("tuneMetaSpaceEmergencyLimit", size(0), "3G"),
		free("tuneMetaInodesLowLimit", size(0), "10M"),
		free("tuneMetaInodesEmergencyLimit", size(0), "1M"),
		free("tuneMetaSpaceNormalSpreadThreshold", size(0), "0"),
		free("tuneMetaSpaceLowSpreadThreshold", size(0), "0"),
		free("tuneMetaSpaceLowDynamicLimit", size(0), "0"),
		free("tuneMetaSpaceEmergencyDynamicLimit", size(0), "0"),
		free("tuneMetaInodesNormalSpreadThreshold", size(0), "0"),
		free("tuneMetaInodesLowSpreadThreshold", size(0), "0"),
		free("tuneMetaInodesLowDynamicLimit", size(0), "0"),
		free("tuneMetaInodesEmergencyDynamicLimit", size(0), "0"),
		free("tuneStorageDynamicPools", boolean, "true"),
		free("tuneStorageSpaceLowLimit", size(0), "1T"),
		free("tuneStorageSpaceEmergencyLimit", size(0), "20G"),
		free("tuneStorageInodesLowLimit", size(0), "10M"),
		free("tuneStorageInodesEmergencyLimit", size(0), "1M"),
		free("tuneStorageSpaceNormalSpreadThreshold", size(0), "0"),
		free("tuneStorageSpaceLowSpreadThreshold", size(0), "0"),
		free("tuneStorageSpaceLowDynamicLimit", size(0), "0"),
		free("tuneStorageSpaceEmergencyDynamicLimit", size(0), "0"),
		free("tuneStorageInodesNormalSpreadThreshold", size(0), "0"),
		free("tuneStorageInodesLowSpreadThreshold", size(0), "0"),
		free("tuneStorageInodesLowDynamicLimit", size(0), "0"),
		free("tuneStorageInodesEmergencyDynamicLimit", size(0), "0"),
		// The third type is file, and there is none.
		free("quotaQueryType", oneOf("system", "range"), "system"),
		noFile("quotaQueryUIDFile"),
		noFile("quotaQueryGIDFile"),
		free("quotaQueryUIDRange", twoIDs, ""),
		free("quotaQueryGIDRange", twoIDs, ""),
		free("quotaQueryWithSystemUsersGroups", boolean, "false"),
		free("quotaUpdateIntervalMin", number(1, many), "10"),
		free("quotaStoreIntervalMin", number(1, many), "10"),
	},
	"meta": append([]option{
		given("connMetaPortUDP", port, "8005").upTo("8.0.0"),
		given("connMetaPortTCP", port, "8005").upTo("8.0.0"),
		given("connMetaPort", port, "8005").from("8.0.0"),
		free("connMaxInternodeNum", number(1, 65535), "32"),
		fixed("logStdFile", path, "/var/log/beegfs-meta.log", ""),
		given("storeMetaDirectory", path, ""),
		// It is written into the directory when that is prepared, and never changed.
		fixed("storeUseExtendedAttribs", boolean, "true", "true"),
		free("storeSelfHealEmptyFiles", boolean, "true"),
		free("storeClientXAttrs", boolean, "false"),
		free("storeClientACLs", boolean, "false"),
		noFile("sysTargetAttachmentFile"),
		free("sysAllowUserSetPattern", boolean, "false"),
		noFile("sysFileEventLogTarget"),
		noFile("sysFileEventPersistDirectory").from("8.0.0"),
		free("sysFileEventPersistSize", size(0), "0").from("8.0.0"),
		// 0 is not a number of workers: BeeGFS then takes two for each CPU of the machine, in every server of the node.
		ofField("tuneNumWorkers", number(1, 4096), "0", "spec.metadata.workerThreads"),
		free("tuneWorkerBufSize", size(128<<10), "1m"),
		// 0 is two for each worker.
		free("tuneNumCommSlaves", number(0, 8192), "0"),
		free("tuneCommSlaveBufSize", size(128<<10), "1m"),
		free("tuneDefaultChunkSize", chunkSize, "512k"),
		free("tuneDefaultNumStripeTargets", number(1, 256), "4"),
		free("tuneDirMetadataCacheLimit", number(0, many), "1024"),
		ofField("tuneTargetChooser", oneOf("randomized", "roundrobin", "randomrobin", "randominternode"), "randomized", "spec.beegfs.targetChooser"),
		free("tuneLockGrantWaitMS", number(1, many), "333"),
		free("tuneLockGrantNumRetries", number(0, many), "15"),
		free("tuneRotateMirrorTargets", boolean, "false"),
		free("tuneEarlyUnlinkResponse", boolean, "true"),
		free("tuneMirrorTimestamps", boolean, "true"),
		free("tuneDisposalGCPeriod", number(0, many), "0"),
		free("tuneChunkBalanceLockingTimeLimit", number(1, many), "300").from("8.2.0"),
		free("quotaEarlyChownResponse", boolean, "true"),
	}, ofData...),
	"storage": append([]option{
		given("connStoragePortUDP", port, "8003").upTo("8.0.0"),
		given("connStoragePortTCP", port, "8003").upTo("8.0.0"),
		given("connStoragePort", port, "8003").from("8.0.0"),
		free("connMaxInternodeNum", number(1, 65535), "12"),
		fixed("logStdFile", path, "/var/log/beegfs-storage.log", ""),
		given("storeStorageDirectory", text, ""),
		ofField("tuneNumWorkers", number(1, 4096), "12", "spec.storagePools[].workerThreads"),
		free("tuneUsePerTargetWorkers", boolean, "true"),
		free("tuneWorkerBufSize", size(128<<10), "4m"),
		free("tuneFileReadSize", size(4096), "128k"),
		free("tuneFileReadAheadTriggerSize", size(0), "4m"),
		free("tuneFileReadAheadSize", size(0), "0m"),
		free("tuneFileWriteSize", size(4096), "128k"),
		free("tuneFileWriteSyncSize", size(0), "0m"),
		free("tuneDirCacheLimit", number(0, many), "1024"),
		free("tuneEarlyStat", boolean, "false"),
		free("tuneNumResyncGatherSlaves", number(1, 1024), "6"),
		free("quotaDisableZfsSupport", boolean, "false"),
		free("sysResyncSafetyThresholdMins", number(0, many), "10"),
	}, ofData...),
}

// renamed are options that have had two names, or that a user of the other version looks for under the other name.
var renamed = [][2]string{
	{"connClientPortUDP", "connClientPort"}, {"connMgmtdPortUDP", "connMgmtdPort"}, {"connMgmtdPortTCP", "connMgmtdPort"},
	{"connMetaPortUDP", "connMetaPort"}, {"connMetaPortTCP", "connMetaPort"}, {"connMonPortUDP", "connMonPort"},
	{"connStoragePortUDP", "connStoragePort"}, {"connStoragePortTCP", "connStoragePort"},
	{"connNonPrimaryExpiration", "connFallbackExpirationSecs"}, {"tuneDefaultNumStripeNodes", "tuneDefaultNumStripeTargets"},
	// The management service.
	{"storeMgmtdDirectory", "db-file"}, {"connMgmtdPortUDP", "beemsg-port"}, {"connMgmtdPortTCP", "beemsg-port"},
	{"connPortShift", "port-shift"}, {"connInterfacesFile", "interfaces"}, {"connInterfacesList", "interfaces"},
	{"connAuthFile", "auth-file"}, {"connDisableAuthentication", "auth-disable"}, {"connMaxInternodeNum", "connection-limit"},
	{"connDisableIPv6", "ipv6-disable"}, {"logType", "log-target"}, {"logLevel", "log-level"}, {"sysAllowNewServers", "registration-disable"},
	{"sysAllowNewTargets", "registration-disable"}, {"sysTargetOfflineTimeoutSecs", "node-offline-timeout"},
	{"tuneClientAutoRemoveMins", "client-auto-remove-timeout"},
	{"quotaEnableEnforcement", "quota-enforce"}, {"quotaUpdateIntervalMin", "quota-update-interval"},
	{"quotaQueryUIDFile", "quota-user-ids-file"}, {"quotaQueryGIDFile", "quota-group-ids-file"},
	{"quotaQueryUIDRange", "quota-user-ids-range"}, {"quotaQueryGIDRange", "quota-group-ids-range"},
	{"runDaemonized", "daemonize"}, {"pidFile", "daemonize-pid-file"},
	{"tuneMetaSpaceLowLimit", "cap-pool-meta-limits-space-low"},
	{"tuneMetaSpaceEmergencyLimit", "cap-pool-meta-limits-space-emergency"},
	{"tuneMetaInodesLowLimit", "cap-pool-meta-limits-inodes-low"},
	{"tuneMetaInodesEmergencyLimit", "cap-pool-meta-limits-inodes-emergency"},
	{"tuneStorageSpaceLowLimit", "cap-pool-storage-limits-space-low"},
	{"tuneStorageSpaceEmergencyLimit", "cap-pool-storage-limits-space-emergency"},
	{"tuneStorageInodesLowLimit", "cap-pool-storage-limits-inodes-low"},
	{"tuneStorageInodesEmergencyLimit", "cap-pool-storage-limits-inodes-emergency"},
}
