package options

// option is one option of a daemon.
//
// The sources of the tables: names are those of Config::loadDefaults and AbstractConfig::loadDefaults; types and ranges those of
// applyConfigMap and initImplicitVals beside them; values those of the shipped configuration file or, if it has none, those of
// loadDefaults:
//
//	mgmtd 7    mgmtd/source/app/config/Config.cpp, common/.../AbstractConfig.cpp, beegfs-mgmtd.conf       (7.4.6; changes since 7.4.0)
//	meta       meta/source/app/config/Config.cpp, common/.../AbstractConfig.cpp, beegfs-meta.conf         (7.4.6, 8.3.1; changes since 7.4.0)
//	storage    storage/source/app/config/Config.cpp, common/.../AbstractConfig.cpp, beegfs-storage.conf   (7.4.6, 8.3.1; changes since 7.4.0)
//	client     client_module/source/app/config/Config.c, beegfs-client.conf                               (7.4.6, 8.3.1; changes since 7.4.0)
//	mgmtd 8    mgmtd/src/config.rs, mgmtd/src/cap_pool.rs, mgmtd/assets/beegfs-mgmtd.toml                  (8.3.1; changes since 8.0.0)
//
// A newer version is assumed to have the options of the newest version of its series. testdata/options-* has the same facts as plain lists,
// by version.
type option struct {
	name string
	kind kind
	// shipped is the value in BeeGFS's own configuration file, or the compiled one.
	shipped string
	// ours replaces shipped if it is set, and always in an option that only the operator sets.
	ours string
	// operators is true when the operator sets it, and no user may.
	operators bool
	// needed is true when the caller of render has to give a value.
	needed bool
	// field of the spec that sets it, empty when there is none.
	field string
	// because ends the sentence that refuses such an option, empty if there is no reason besides.
	because string
	// unwritten is true for an option that is never in the file.
	unwritten bool
	// table of TOML that holds it.
	table string
	// since and until bound the versions that have the option: from the first, and before the second.
	since, until string
}

// standing is the value if neither the caller nor the user sets one.
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

// userSets declares an option that a user may set.
func userSets(name string, k kind, shipped string) option {
	return option{name: name, kind: k, shipped: shipped}
}

// operatorSets declares an option with the operator's value, unless the caller of render sets another.
func operatorSets(name string, k kind, shipped, ours string) option {
	return option{name: name, kind: k, shipped: shipped, ours: ours, operators: true}
}

// backendGives declares an option that the caller of render sets.
func backendGives(name string, k kind, shipped string) option {
	return option{name: name, kind: k, shipped: shipped, operators: true, needed: true}
}

// fieldSets declares an option that the caller of render sets from a field of the spec.
func fieldSets(name string, k kind, shipped, field string) option {
	return option{name: name, kind: k, shipped: shipped, field: field, needed: true}
}

// namesFile declares an option with a file, a directory or a socket that no pod has.
func namesFile(name string) option {
	return option{name: name, kind: absolutePath, operators: true,
		because: "names a file, a directory or a socket, and the daemon's pod has none of yours"}
}

// leftOut declares an option that is never written, so that its shipped value applies.
func leftOut(name string, k kind, shipped, because string) option {
	return option{name: name, kind: k, shipped: shipped, operators: true, unwritten: true, because: because}
}

// optionsOf returns the options that a daemon of a version has, by name.
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
			if (o.since == "" || !olderThan(version, o.since)) && (o.until == "" || olderThan(version, o.until)) {
				options[o.name] = o
			}
		}
	}
	return options
}

// port is a port of TCP or UDP.
var portNumber = integer(1, 65535)

const (
	interfacesField = "spec.network.interfaces"
	rdmaField       = "spec.beegfs.rdma"
)

// ofServers lists the options that mgmtd of BeeGFS 7, and meta and storage of both versions, have in common. An option of the same name in
// the daemon's own table replaces it.
var ofServers = []option{
	leftOut("cfgFile", absolutePath, "", "is an argument of the daemon that the operator gives"),
	operatorSets("logType", oneOf("logfile", "syslog"), "logfile", "logfile").upTo("8.0.0"),
	operatorSets("logType", oneOf("logfile", "syslog"), "syslog", "logfile").from("8.0.0"),
	userSets("logLevel", integer(0, 5), "3"),
	userSets("logNoDate", boolean, "false"),
	userSets("logNumLines", integer(1, many), "50000"),
	userSets("logNumRotatedFiles", integer(0, many), "5"),

	operatorSets("connPortShift", integer(0, 65535), "0", "0"),
	operatorSets("connClientPortUDP", portNumber, "8004", "8004").upTo("8.0.0"),
	operatorSets("connStoragePortUDP", portNumber, "8003", "8003").upTo("8.0.0"),
	operatorSets("connStoragePortTCP", portNumber, "8003", "8003").upTo("8.0.0"),
	operatorSets("connMetaPortUDP", portNumber, "8005", "8005").upTo("8.0.0"),
	operatorSets("connMetaPortTCP", portNumber, "8005", "8005").upTo("8.0.0"),
	operatorSets("connMonPortUDP", portNumber, "8007", "8007").upTo("8.0.0"),
	operatorSets("connHelperdPortTCP", portNumber, "8006", "8006").upTo("8.0.0"),
	backendGives("connMgmtdPortUDP", portNumber, "8008").upTo("8.0.0"),
	backendGives("connMgmtdPortTCP", portNumber, "8008").upTo("8.0.0"),
	operatorSets("connClientPort", portNumber, "8004", "8004").from("8.0.0"),
	operatorSets("connStoragePort", portNumber, "8003", "8003").from("8.0.0"),
	operatorSets("connMetaPort", portNumber, "8005", "8005").from("8.0.0"),
	operatorSets("connMonPort", portNumber, "8007", "8007").from("8.0.0"),
	backendGives("connMgmtdPort", portNumber, "8008").from("8.0.0"),

	fieldSets("connUseRDMA", boolean, "true", rdmaField),
	userSets("connBacklogTCP", integer(1, many), "128"),
	userSets("connMaxInternodeNum", integer(1, 65535), "6"),
	userSets("connFallbackExpirationSecs", integer(0, many), "900"),
	userSets("connTCPRcvBufSize", integer(0, many), "0"),
	userSets("connUDPRcvBufSize", integer(0, many), "0"),
	userSets("connRDMABufSize", integer(4096, many), "8192"),
	userSets("connRDMABufNum", integer(3, many), "70"),
	userSets("connRDMATypeOfService", integer(0, 255), "0"),
	fieldSets("connNetFilterFile", absolutePath, "", "spec.beegfs.networks").notNeeded(),
	fieldSets("connTcpOnlyFilterFile", absolutePath, "", "spec.beegfs.tcpNetworks").notNeeded(),
	backendGives("connAuthFile", absolutePath, "").upTo("8.0.0"),
	backendGives("connAuthFile", absolutePath, "/etc/beegfs/conn.auth").from("8.0.0"),
	operatorSets("connDisableAuthentication", boolean, "false", "false"),
	userSets("connRestrictOutboundInterfaces", boolean, "false").from("7.4.1"),
	userSets("connNoDefaultRoute", networkList, "0.0.0.0/0").from("7.4.1").upTo("8.2.0"),
	userSets("connNoDefaultRoute", networkList, "::/0").from("8.2.0"),
	userSets("connDisableIPv6", boolean, "false").from("8.2.0"),
	userSets("connMessagingTimeouts", integers(3), "0,0,0"),
	userSets("connRDMATimeouts", integers(3), "0,0,0"),
	fieldSets("connInterfacesFile", absolutePath, "", interfacesField),
	operatorSets("connInterfacesList", plainText, "", ""),

	backendGives("sysMgmtdHost", plainText, ""),
	userSets("sysUpdateTargetStatesSecs", integer(0, many), "0"),
	// Less than 30 ends the daemon. See ConsistentTimeouts.
	userSets("sysTargetOfflineTimeoutSecs", integer(30, many), "180"),
	userSets("quotaEnableEnforcement", boolean, "false"),
	// A directory whose disk is not mounted must never be initialized as a new, empty one: node run initializes, once, and that is recorded.
	operatorSets("storeAllowFirstRunInit", boolean, "true", "false"),
	operatorSets("runDaemonized", boolean, "true", "false"),
	operatorSets("pidFile", absolutePath, "", ""),
}

// ofData lists the options that meta and storage have in common.
var ofData = []option{
	// BeeGFS's own check of the device does not start where a mount is private to the container; node run proves the disk instead.
	operatorSets("storeFsUUID", plainText, "", ""),
	// Each of these three gives a thread the CPUs of a whole NUMA node, regardless of the CPUs to which node run has pinned the daemon; and
	// the daemon stops if its cpuset has none of them.
	operatorSets("tuneBindToNumaZone", integer(0, many, ""), "", ""),
	operatorSets("tuneWorkerNumaAffinity", boolean, "false", "false"),
	operatorSets("tuneListenerNumaAffinity", boolean, "false", "false"),
	userSets("tuneListenerPrioShift", integer(-20, 20), "-1"),
	userSets("tuneNumStreamListeners", integer(1, 1024), "1"),
	userSets("tuneProcessFDLimit", integer(0, many), "50000"),
	userSets("tuneUsePerUserMsgQueues", boolean, "false"),
	userSets("tuneUseAggressiveStreamPoll", boolean, "false"),
	userSets("tuneNumResyncSlaves", integer(1, 1024), "12"),
	userSets("tuneChunkBalanceQueueLimit", integer(1, many), "100000").from("8.2.0"),
}

// ofServer lists the options of one server only; mgmtd is that of BeeGFS 7.
var ofServer = map[string][]option{
	"mgmtd": {
		operatorSets("sysMgmtdHost", plainText, "", ""),
		// The management service never uses RDMA.
		operatorSets("connUseRDMA", boolean, "false", "false"),
		userSets("logLevel", integer(0, 5), "2"),
		operatorSets("logStdFile", absolutePath, "/var/log/beegfs-mgmtd.log", ""),
		backendGives("storeMgmtdDirectory", absolutePath, ""),
		// If new servers are not allowed, a server that the operator adds could never register.
		operatorSets("sysAllowNewServers", boolean, "true", "true"),
		operatorSets("sysAllowNewTargets", boolean, "true", "true"),
		userSets("tuneNumWorkers", integer(1, 4096), "4"),
		userSets("tuneNumQuotaWorkers", integer(1, 4096), "8"),
		userSets("tuneClientAutoRemoveMins", integer(5, many, "0"), "30"),
		userSets("tuneProcessFDLimit", integer(0, many), "10000"),
		userSets("tuneMetaDynamicPools", boolean, "true"),
		userSets("tuneMetaSpaceLowLimit", sizeFrom(0), "10G"),
		userSets("tuneMetaSpaceEmergencyLimit", sizeFrom(0), "3G"),
		userSets("tuneMetaInodesLowLimit", sizeFrom(0), "10M"),
		userSets("tuneMetaInodesEmergencyLimit", sizeFrom(0), "1M"),
		userSets("tuneMetaSpaceNormalSpreadThreshold", sizeFrom(0), "0"),
		userSets("tuneMetaSpaceLowSpreadThreshold", sizeFrom(0), "0"),
		userSets("tuneMetaSpaceLowDynamicLimit", sizeFrom(0), "0"),
		userSets("tuneMetaSpaceEmergencyDynamicLimit", sizeFrom(0), "0"),
		userSets("tuneMetaInodesNormalSpreadThreshold", sizeFrom(0), "0"),
		userSets("tuneMetaInodesLowSpreadThreshold", sizeFrom(0), "0"),
		userSets("tuneMetaInodesLowDynamicLimit", sizeFrom(0), "0"),
		userSets("tuneMetaInodesEmergencyDynamicLimit", sizeFrom(0), "0"),
		userSets("tuneStorageDynamicPools", boolean, "true"),
		userSets("tuneStorageSpaceLowLimit", sizeFrom(0), "1T"),
		userSets("tuneStorageSpaceEmergencyLimit", sizeFrom(0), "20G"),
		userSets("tuneStorageInodesLowLimit", sizeFrom(0), "10M"),
		userSets("tuneStorageInodesEmergencyLimit", sizeFrom(0), "1M"),
		userSets("tuneStorageSpaceNormalSpreadThreshold", sizeFrom(0), "0"),
		userSets("tuneStorageSpaceLowSpreadThreshold", sizeFrom(0), "0"),
		userSets("tuneStorageSpaceLowDynamicLimit", sizeFrom(0), "0"),
		userSets("tuneStorageSpaceEmergencyDynamicLimit", sizeFrom(0), "0"),
		userSets("tuneStorageInodesNormalSpreadThreshold", sizeFrom(0), "0"),
		userSets("tuneStorageInodesLowSpreadThreshold", sizeFrom(0), "0"),
		userSets("tuneStorageInodesLowDynamicLimit", sizeFrom(0), "0"),
		userSets("tuneStorageInodesEmergencyDynamicLimit", sizeFrom(0), "0"),
		// The third type is file, and no such file exists in the pods.
		userSets("quotaQueryType", oneOf("system", "range"), "system"),
		namesFile("quotaQueryUIDFile"),
		namesFile("quotaQueryGIDFile"),
		userSets("quotaQueryUIDRange", twoIDs, ""),
		userSets("quotaQueryGIDRange", twoIDs, ""),
		userSets("quotaQueryWithSystemUsersGroups", boolean, "false"),
		userSets("quotaUpdateIntervalMin", integer(1, many), "10"),
		userSets("quotaStoreIntervalMin", integer(1, many), "10"),
	},
	"meta": append([]option{
		backendGives("connMetaPortUDP", portNumber, "8005").upTo("8.0.0"),
		backendGives("connMetaPortTCP", portNumber, "8005").upTo("8.0.0"),
		backendGives("connMetaPort", portNumber, "8005").from("8.0.0"),
		userSets("connMaxInternodeNum", integer(1, 65535), "32"),
		operatorSets("logStdFile", absolutePath, "/var/log/beegfs-meta.log", ""),
		backendGives("storeMetaDirectory", absolutePath, ""),
		// The value is written into the directory when that is prepared, and never changed.
		operatorSets("storeUseExtendedAttribs", boolean, "true", "true"),
		userSets("storeSelfHealEmptyFiles", boolean, "true"),
		userSets("storeClientXAttrs", boolean, "false"),
		userSets("storeClientACLs", boolean, "false"),
		namesFile("sysTargetAttachmentFile"),
		userSets("sysAllowUserSetPattern", boolean, "false"),
		namesFile("sysFileEventLogTarget"),
		namesFile("sysFileEventPersistDirectory").from("8.0.0"),
		userSets("sysFileEventPersistSize", sizeFrom(0), "0").from("8.0.0"),
		// With 0, BeeGFS starts two workers for each CPU of the machine, in every server of the node.
		fieldSets("tuneNumWorkers", integer(1, 4096), "0", "spec.metadataServers.beegfs.workerThreads"),
		userSets("tuneWorkerBufSize", sizeFrom(128<<10), "1m"),
		// 0 is two for each worker.
		userSets("tuneNumCommSlaves", integer(0, 8192), "0"),
		userSets("tuneCommSlaveBufSize", sizeFrom(128<<10), "1m"),
		userSets("tuneDefaultChunkSize", chunkSize, "512k"),
		userSets("tuneDefaultNumStripeTargets", integer(1, 256), "4"),
		userSets("tuneDirMetadataCacheLimit", integer(0, many), "1024"),
		fieldSets("tuneTargetChooser", oneOf("randomized", "roundrobin", "randomrobin", "randominternode"),
			"randomized", "spec.beegfs.targetChooser"),
		userSets("tuneLockGrantWaitMS", integer(1, many), "333"),
		userSets("tuneLockGrantNumRetries", integer(0, many), "15"),
		userSets("tuneRotateMirrorTargets", boolean, "false"),
		userSets("tuneEarlyUnlinkResponse", boolean, "true"),
		userSets("tuneMirrorTimestamps", boolean, "true"),
		userSets("tuneDisposalGCPeriod", integer(0, many), "0"),
		userSets("tuneChunkBalanceLockingTimeLimit", integer(1, many), "300").from("8.2.0"),
		userSets("quotaEarlyChownResponse", boolean, "true"),
	}, ofData...),
	"storage": append([]option{
		backendGives("connStoragePortUDP", portNumber, "8003").upTo("8.0.0"),
		backendGives("connStoragePortTCP", portNumber, "8003").upTo("8.0.0"),
		backendGives("connStoragePort", portNumber, "8003").from("8.0.0"),
		userSets("connMaxInternodeNum", integer(1, 65535), "12"),
		operatorSets("logStdFile", absolutePath, "/var/log/beegfs-storage.log", ""),
		backendGives("storeStorageDirectory", plainText, ""),
		fieldSets("tuneNumWorkers", integer(1, 4096), "12", "spec.storagePools[].beegfs.workerThreads"),
		userSets("tuneUsePerTargetWorkers", boolean, "true"),
		userSets("tuneWorkerBufSize", sizeFrom(128<<10), "4m"),
		userSets("tuneFileReadSize", sizeFrom(4096), "128k"),
		userSets("tuneFileReadAheadTriggerSize", sizeFrom(0), "4m"),
		userSets("tuneFileReadAheadSize", sizeFrom(0), "0m"),
		userSets("tuneFileWriteSize", sizeFrom(4096), "128k"),
		userSets("tuneFileWriteSyncSize", sizeFrom(0), "0m"),
		userSets("tuneDirCacheLimit", integer(0, many), "1024"),
		userSets("tuneEarlyStat", boolean, "false"),
		userSets("tuneNumResyncGatherSlaves", integer(1, 1024), "6"),
		userSets("quotaDisableZfsSupport", boolean, "false"),
		userSets("sysResyncSafetyThresholdMins", integer(0, many), "10"),
	}, ofData...),
}

// renamedOptions pairs the names of options that have had two names, or that have another name in the other version.
var renamedOptions = [][2]string{
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
