package option

import (
	"maps"
	"slices"
)

// mayBeEmpty lists non-text options with a meaning for an empty value.
var mayBeEmpty = map[string]bool{"tuneBindToNumaZone": true}

// Sorted returns the names of the given options in the order in which the programs check them.
func Sorted(values Values) []string { return slices.Sorted(maps.Keys(values)) }

// common returns the options of every server and of beegfs-ctl (common/app/config/AbstractConfig.cpp, 7.4.6 and 8.3.1).
func common(major int) Table {
	table := Table{
		"cfgFile": Text, "logType": Text, "logLevel": Int, "logNoDate": Bool, "logStdFile": Text, "logNumLines": Int,
		"logNumRotatedFiles": Int, "connPortShift": Int, "connUseRDMA": Bool, "connBacklogTCP": Int, "connMaxInternodeNum": Int,
		"connNonPrimaryExpiration": Text, "connFallbackExpirationSecs": Int, "connTCPRcvBufSize": Int, "connUDPRcvBufSize": Int,
		"connRDMABufSize": Int, "connRDMABufNum": Int, "connRDMATypeOfService": Int, "connNetFilterFile": Text, "connAuthFile": Text,
		"connDisableAuthentication": Bool, "connTcpOnlyFilterFile": Text, "connRestrictOutboundInterfaces": Bool,
		"connNoDefaultRoute": Text, "connMessagingTimeouts": Triple, "connRDMATimeouts": Triple, "sysMgmtdHost": Text,
		"sysUpdateTargetStatesSecs": Int, "connClientPortUDP": Port, "connStoragePortUDP": Port, "connMetaPortUDP": Port,
		"connMonPortUDP": Port, "connMgmtdPortUDP": Port, "connStoragePortTCP": Port, "connMetaPortTCP": Port, "connMgmtdPortTCP": Port,
	}
	if major == 7 {
		table["connHelperdPortTCP"] = Port
		return table
	}
	for _, name := range []string{"connClientPort", "connStoragePort", "connMetaPort", "connMonPort", "connMgmtdPort"} {
		table[name] = Port
	}
	table["connDisableIPv6"] = Bool
	return table
}

func with(table Table, more Table) Table {
	maps.Copy(table, more)
	return table
}

// server returns the options that management, metadata and storage servers share in addition to the common ones.
func server(major int) Table {
	return with(common(major), Table{
		"connInterfacesFile": Text, "connInterfacesList": Text, "storeAllowFirstRunInit": Bool, "tuneNumWorkers": Int,
		"tuneProcessFDLimit": Int, "quotaEnableEnforcement": Bool, "sysTargetOfflineTimeoutSecs": Int, "runDaemonized": Bool, "pidFile": Text,
	})
}

// worker returns the options that metadata and storage servers share in addition to those of every server.
func worker(major int) Table {
	return with(server(major), Table{
		"storeFsUUID": Text, "tuneNumStreamListeners": Int, "tuneWorkerBufSize": Size, "tuneWorkerNumaAffinity": Bool,
		"tuneListenerNumaAffinity": Bool, "tuneBindToNumaZone": Int, "tuneListenerPrioShift": Int, "tuneUsePerUserMsgQueues": Bool,
		"tuneUseAggressiveStreamPoll": Bool, "tuneNumResyncSlaves": Int,
	})
}

// Meta returns the options of beegfs-meta (meta/app/config/Config.cpp, 7.4.6 and 8.3.1).
func Meta(major int) Table {
	table := with(worker(major), Table{
		"storeMetaDirectory": Text, "storeUseExtendedAttribs": Bool, "storeSelfHealEmptyFiles": Bool, "storeClientXAttrs": Bool,
		"storeClientACLs": Bool, "sysTargetAttachmentFile": Text, "tuneNumCommSlaves": Int, "tuneCommSlaveBufSize": Size,
		"tuneDefaultChunkSize": Size, "tuneDefaultNumStripeNodes": Int, "tuneDefaultNumStripeTargets": Int,
		"tuneDirMetadataCacheLimit": Int, "tuneTargetChooser": Text, "tuneLockGrantWaitMS": Int, "tuneLockGrantNumRetries": Int,
		"tuneRotateMirrorTargets": Bool, "tuneEarlyUnlinkResponse": Bool, "tuneMirrorTimestamps": Bool, "tuneDisposalGCPeriod": Int,
		"quotaEarlyChownResponse": Bool, "sysAllowUserSetPattern": Bool, "sysFileEventLogTarget": Text,
	})
	if major >= 8 {
		with(table, Table{
			"tuneChunkBalanceQueueLimit": Int, "tuneChunkBalanceLockingTimeLimit": Int, "sysFileEventPersistDirectory": Text,
			"sysFileEventPersistSize": Size,
		})
	}
	return table
}

// Storage returns the options of beegfs-storage (storage/app/config/Config.cpp, 7.4.6 and 8.3.1).
func Storage(major int) Table {
	table := with(worker(major), Table{
		"storeStorageDirectory": Text, "tuneFileReadSize": Size, "tuneFileReadAheadTriggerSize": Size, "tuneFileReadAheadSize": Size,
		"tuneFileWriteSize": Size, "tuneFileWriteSyncSize": Size, "tuneDirCacheLimit": Int, "tuneEarlyStat": Bool,
		"tuneNumResyncGatherSlaves": Int, "tuneUsePerTargetWorkers": Bool, "quotaDisableZfsSupport": Bool,
		"sysResyncSafetyThresholdMins": Int,
	})
	if major >= 8 {
		table["tuneChunkBalanceQueueLimit"] = Int
	}
	return table
}

// Management returns the options of beegfs-mgmtd 7 (mgmtd/app/config/Config.cpp, 7.4.6).
func Management() Table {
	table := with(server(7), Table{
		"storeMgmtdDirectory": Text, "tuneNumQuotaWorkers": Int, "tuneMetaNodeAutoRemoveMins": Int, "tuneStorageNodeAutoRemoveMins": Int,
		"tuneClientAutoRemoveMins": Int, "sysAllowNewServers": Bool, "sysAllowNewTargets": Bool, "quotaUpdateIntervalMin": Int,
		"quotaStoreIntervalMin": Int, "quotaQueryType": Text, "quotaQueryUIDFile": Text, "quotaQueryGIDFile": Text,
		"quotaQueryUIDRange": Text, "quotaQueryGIDRange": Text, "quotaQueryWithSystemUsersGroups": Bool,
	})
	for _, role := range []string{"Meta", "Storage"} {
		table["tune"+role+"DynamicPools"] = Bool
		for _, kind := range []string{"Space", "Inodes"} {
			for _, limit := range []string{"LowLimit", "EmergencyLimit", "NormalSpreadThreshold", "LowSpreadThreshold", "LowDynamicLimit",
				"EmergencyDynamicLimit"} {
				table["tune"+role+kind+limit] = Size
			}
		}
	}
	return table
}

// Ctl returns the options of beegfs-ctl 7 and of beegfs-client.conf, which it reads (ctl/app/config/Config.cpp, 7.4.6). It ignores the
// client's options and unknown ones.
func Ctl() Table {
	return with(common(7), Table{
		"logEnabled": Bool, "connInterfacesFile": Text, "tuneNumWorkers": Int, "tunePreferredMetaFile": Text,
		"tunePreferredStorageFile": Text, "runDaemonized": Bool, "sysNoEnterpriseFeatureMsg": Bool, "mount": Text,
	})
}

// CtlIgnores returns options of the kernel client that beegfs-ctl reads and ignores.
func CtlIgnores() []string {
	return []string{
		"logClientID", "logHelperdIP", "logType", "connNumCommRetries", "connUnmountRetries", "connCommRetrySecs",
		"connMaxConcurrentAttempts", "connRDMAInterfacesFile", "connTCPFallbackEnabled", "connMessagingTimeouts", "connInterfacesList",
		"connRDMATimeouts", "connRDMAFragmentSize", "connRDMAKeyType", "connRDMAMetaFragmentSize", "connRDMAMetaBufNum",
		"connRDMAMetaBufSize", "tuneNumRetryWorkers", "tuneFileCacheType", "tunePagedIOBufSize", "tunePagedIOBufNum",
		"tuneFileCacheBufSize", "tuneFileCacheBufNum", "tunePageCacheValidityMS", "tuneAttribCacheValidityMS",
		"tuneDirSubentryCacheValidityMS", "tuneFileSubentryCacheValidityMS", "tuneENOENTCacheValidityMS", "tuneMaxWriteWorks",
		"tuneMaxReadWorks", "tuneAllowMultiSetWrite", "tuneAllowMultiSetRead", "tunePathBufSize", "tunePathBufNum", "tuneMaxReadWriteNum",
		"tuneMaxReadWriteNodesNum", "tuneMsgBufSize", "tuneMsgBufNum", "tuneRemoteFSync", "tuneUseGlobalFileLocks", "tuneRefreshOnGetAttr",
		"tuneInodeBlockBits", "tuneInodeBlockSize", "tuneMaxClientMirrorSize", "tuneEarlyCloseResponse", "tuneUseGlobalAppendLocks",
		"tuneUseBufferedAppend", "tuneStatFsCacheSecs", "tuneCoherentBuffers", "sysInodeIDStyle", "sysCreateHardlinksAsSymlinks",
		"sysMountSanityCheckMS", "sysSyncOnClose", "sysSessionCheckOnClose", "sysSessionChecksEnabled", "sysTargetOfflineTimeoutSecs",
		"sysXAttrsEnabled", "sysXAttrsCheckCapabilities", "sysACLsEnabled", "quotaEnabled", "sysFileEventLogMask", "sysRenameEbusyAsXdev",
	}
}
