package v1alpha1

// Condition types of all kinds, in the vocabulary of kstatus
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
const (
	// ConditionReady is true while programs can read and write all of their data, according to the filesystem itself.
	ConditionReady = "Ready"
	// ConditionDegraded is true while a server, a target, a copy or a mount is missing, and absent otherwise. Programs may continue
	// nevertheless: Ready shows that.
	ConditionDegraded = "Degraded"
	// ConditionSucceeded is true when every point of a run has a result, false when the run ended with failed points or was refused.
	ConditionSucceeded = "Succeeded"
	// ConditionAccepted is true when the results of a run meet every expectation of spec.expect, and false when one of them is not met. It is
	// unknown while that is not decided, and absent without expectations.
	ConditionAccepted = "Accepted"
	// ConditionReconciling is true while the operator works on it, or while a change needs only time, and absent otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when a person has to act, and absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionReconciled is false while the operator's passes over the object fail, and absent otherwise; the message names the step.
	ConditionReconciled = "Reconciled"
	// ConditionEvaluationOnly is true while targets are directories: nothing proves that a directory is still on the same disk.
	ConditionEvaluationOnly = "EvaluationOnly"
	// ConditionPinned is true when every daemon whose role requests CPUs runs on them, according to the kernel; absent when no role requests
	// any.
	ConditionPinned = "Pinned"
	// ConditionTransportAsSpecified is true when servers and clients of a BeeGFS offer the transport that spec.beegfs.rdma asks for, as BeeGFS
	// lists their interfaces: with Required, all of them RDMA; with Auto, those on nodes with an active adapter. It is absent while RDMA is
	// disabled. It does not affect Ready.
	ConditionTransportAsSpecified = "TransportAsSpecified"
	// ConditionSpread is true when the filesystem keeps the copies of data in different failure domains, as far as it can be configured to;
	// absent without spec.failureDomains.
	ConditionSpread = "Spread"
	// ConditionPoolNearlyFull is true while a storage pool is full, or soon is, and absent otherwise.
	ConditionPoolNearlyFull = "PoolNearlyFull"
	// ConditionNodesSelected is false while the nodeSelector of metaloggers, clients or backups matches no node, and absent otherwise. It does
	// not affect Ready.
	ConditionNodesSelected = "NodesSelected"
	// ConditionPodsAsAsked is false while pods of the filesystem differ from the operator's request, because a LimitRange or a webhook of the
	// cluster changed them, and absent otherwise. It does not affect Ready.
	ConditionPodsAsAsked = "PodsAsAsked"
	// ConditionCopiesLast is false while copies of metadata are on nodes whose own disk does not survive a restart, and absent otherwise. It
	// does not affect Ready.
	ConditionCopiesLast = "CopiesLast"
	// ConditionMountsShared is false while nodes with disks of the filesystem have /var/lib/parallelfs on a mount that is not shared, and
	// absent otherwise. It does not affect Ready.
	ConditionMountsShared = "MountsShared"
	// ConditionPartnersProven is false while it is not proven that the second node of a target reaches its disk, and absent otherwise: that
	// node is no protection then. It does not affect Ready.
	ConditionPartnersProven = "PartnersProven"
	// ConditionCertificateLasts is false while the certificate that servers use expires within 30 days, has expired, or can't be used, and
	// absent otherwise. It does not affect Ready.
	ConditionCertificateLasts = "CertificateLasts"
	// ConditionLicensed is true when a BeeGFS 8 has the license that the spec needs, and false without it; absent when no license is needed.
	ConditionLicensed = "Licensed"
	// ConditionRecovering is present while a person asks for the recovery of lost metadata, and true while that is in progress.
	ConditionRecovering = "Recovering"
	// ConditionBackedUp is true while each place of spec.backups has a verified backup that is no older than the schedule requires. It does
	// not affect Ready.
	ConditionBackedUp = "BackedUp"
	// ConditionMetadataCopies is true while all copies of the metadata on running servers are proven: the filesystem's own program has read
	// each of them. It is unknown while one was not read yet, and absent if no server is to keep one. It does not affect Ready.
	ConditionMetadataCopies = "MetadataCopies"
	// ConditionChangesHeld is true while a change of a FileSystem waits until a BenchmarkRun releases its lease: a restart, a drain, or a
	// target that would be taken up or released. It is absent while no change waits.
	ConditionChangesHeld = "ChangesHeld"
	// ConditionNodeImageWaits is true while servers run with the node image of an earlier operator: they switch to the current image when they
	// are restarted for another reason, or when AnnotationTakeUpNodeImage asks for it. It is absent while no server does.
	ConditionNodeImageWaits = "NodeImageWaits"
	// ConditionGivenUp of a FileSystemNode is the result of a person's statement that its node never comes back; absent without one.
	ConditionGivenUp = "GivenUp"
	// ConditionMaintenance is true while the node of a FileSystemNode may be away for maintenance. It is false while the node is cordoned and
	// must not be away yet, when its maintenance has lasted too long, or when it restarted without a maintenance. Otherwise it is absent.
	ConditionMaintenance = "Maintenance"
	// ConditionUpgrading is true while a FileSystem is upgraded to another version, and false while the upgrade can't begin; absent when all
	// of it runs the version in spec.version.
	ConditionUpgrading = "Upgrading"
	// ConditionOnline is true when the filesystem itself lists a target as online.
	ConditionOnline = "Online"
	// ConditionSafeToRemove is true when the filesystem reports that no data is left on a target that was marked for removal.
	ConditionSafeToRemove = "SafeToRemove"
	// ConditionDiskHealthy is false when the disk of a target reports a failure, or problems that may lead to lost data. It is unknown while
	// no agent confirms the last report, and absent while the disk reports nothing.
	ConditionDiskHealthy = "DiskHealthy"
	// ConditionReleased is true when a target that was deleted is unmounted and its mountpoint is gone.
	ConditionReleased = "Released"
	// ConditionDestroyed is true when the data of a target was wiped and the device was read to be blank; false when that failed.
	ConditionDestroyed = "Destroyed"
)

// Reasons of the conditions of a StorageTarget.
const (
	// ReasonProven surfaces when the disk is mounted and its UUID and marker agree with what is recorded.
	ReasonProven = "Proven"
	// ReasonPlanning surfaces until the agent of the node has looked at the device.
	ReasonPlanning = "Planning"
	// ReasonAwaitingApproval surfaces when the plan must be approved; the message names its hash and what it would destroy.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonApprovalRefused surfaces when spec.approvedPlan is the hash of another plan than the current one.
	ReasonApprovalRefused = "ApprovalRefused"
	// ReasonFormatForbidden surfaces when the device is no target and the policy is Never.
	ReasonFormatForbidden = "FormatForbidden"
	// ReasonProvisioning surfaces while the plan is carried out.
	ReasonProvisioning = "Provisioning"
	// ReasonProvisioningFailed surfaces when a step of the plan failed; the message is the command's own.
	ReasonProvisioningFailed = "ProvisioningFailed"
	// ReasonDeviceRefused surfaces when the device may not be touched; the message names every reason.
	ReasonDeviceRefused = "DeviceRefused"
	// ReasonOtherCluster surfaces when the marker on the disk belongs to this target in another cluster, which may be using the disk.
	ReasonOtherCluster = "OtherCluster"
	// ReasonDeviceConflict surfaces when two targets need the device; the message names both.
	ReasonDeviceConflict = "DeviceConflict"
	// ReasonTargetMissing surfaces when the disk of a provisioned target is missing, or is replaced by another or a blank disk.
	ReasonTargetMissing = "TargetMissing"
	// ReasonMountFailed surfaces when the disk is present and can't be mounted; it is never formatted because of that.
	ReasonMountFailed = "MountFailed"
	// ReasonQueueRefused surfaces when the kernel did not accept a queue setting; the target is used nevertheless.
	ReasonQueueRefused = "QueueRefused"
	// ReasonAgentMissing surfaces when no agent runs on the target's node, or when the agent is not ready.
	ReasonAgentMissing = "AgentMissing"
	// ReasonUnmountFailed surfaces when a deleted target can't be unmounted; the message names the users of the mount.
	ReasonUnmountFailed = "UnmountFailed"
	// ReasonUnmounted is the reason of Released.
	ReasonUnmounted = "Unmounted"
	// ReasonWiped and ReasonWipeFailed are the reasons of Destroyed.
	ReasonWiped = "Wiped"
	// ReasonWipeFailed surfaces when a device could not be wiped, or was not proven to be the target's.
	ReasonWipeFailed = "WipeFailed"
	// ReasonServing is the reason of Online.
	ReasonServing = "Serving"
	// ReasonNotServing surfaces when the filesystem does not list the target as online.
	ReasonNotServing = "NotServing"
	// ReasonNoProblems: the disk reports no problem. ReasonDiskSuspect and ReasonDiskFailing are the other states of a disk (DiskState).
	ReasonNoProblems  = "NoProblems"
	ReasonDiskSuspect = "DiskSuspect"
	ReasonDiskFailing = "DiskFailing"
	// ReasonMovingData surfaces while the filesystem moves the data of a target to others.
	ReasonMovingData = "MovingData"
	// ReasonClientsMounted surfaces while nodes have a BeeGFS mounted, so that moving data could lose their writes, and no person has
	// confirmed that nothing writes.
	ReasonClientsMounted = "ClientsMounted"
	// ReasonDataMoved surfaces when no data that is needed is left on the target.
	ReasonDataMoved = "DataMoved"
	// ReasonNotRemovable surfaces when the filesystem can't move the data on a target, such as the metadata of a MooseFS master.
	ReasonNotRemovable = "NotRemovable"
)

// Reasons of the conditions of a FileSystem.
const (
	// ReasonHealthy surfaces when all servers, targets and mounts are online.
	ReasonHealthy = "Healthy"
	// ReasonDegradedService is the reason of a true Ready while Degraded is true; Degraded lists what is missing.
	ReasonDegradedService = "DegradedService"
	// ReasonInvalidSpec surfaces when the spec contradicts itself or the cluster; the message names the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonOptionRefused surfaces when spec.moosefs or spec.beegfs names an option that the operator owns or the daemon does not have.
	ReasonOptionRefused = "OptionRefused"
	// ReasonNoNodes surfaces when a nodeSelector matches no node.
	ReasonNoNodes = "NoNodes"
	// ReasonNoAddress surfaces when a node has no InternalIP of a family that the filesystem has, such as IPv6 addresses only.
	ReasonNoAddress = "NoAddress"
	// ReasonTooManyNodes surfaces when the metadata nodeSelector matches more nodes than the filesystem can use.
	ReasonTooManyNodes = "TooManyNodes"
	// ReasonPortConflict surfaces when another FileSystem uses the same ports on the same node.
	ReasonPortConflict = "PortConflict"
	// ReasonDirectoryConflict surfaces when another FileSystem uses the same directory on the same node.
	ReasonDirectoryConflict = "DirectoryConflict"
	// ReasonStarting surfaces while daemons start for the first time.
	ReasonStarting = "Starting"
	// ReasonPassFailed is the reason of a false Reconciled. The operator tries again within a minute.
	ReasonPassFailed = "PassFailed"
	// ReasonRestarting surfaces while the operator restarts daemons, one failure domain at a time, to apply a change.
	ReasonRestarting = "Restarting"
	// ReasonOperatorUpdated is the reason of NodeImageWaits; the message has the number of servers, and how to restart them now.
	ReasonOperatorUpdated = "OperatorUpdated"
	// ReasonUpgrading is the reason of a true Upgrading, and of Reconciling meanwhile; the message has the progress of the upgrade, and what
	// it waits for.
	ReasonUpgrading = "Upgrading"
	// ReasonUpgradeRefused surfaces when an upgrade to spec.version is impossible: no path leads there, the operator has no image of it, or it
	// refuses an option of the spec. The servers continue with status.version.
	ReasonUpgradeRefused = "UpgradeRefused"
	// ReasonBackupMissing surfaces while an upgrade waits for a verified backup, or for a person who accepts an upgrade without one.
	ReasonBackupMissing = "BackupMissing"
	// ReasonImagesMissing surfaces while an upgrade waits until the nodes of servers have their new images.
	ReasonImagesMissing = "ImagesMissing"
	// ReasonUpgradeWaits surfaces while an upgrade waits for a healthy filesystem, a window, a benchmark, or a person.
	ReasonUpgradeWaits = "UpgradeWaits"
	// ReasonVersionSkew surfaces while a server or a client is newer than an upgrade would make its master, which the vendor forbids.
	ReasonVersionSkew = "VersionSkew"
	// ReasonClientsOlder surfaces when all servers run the version of the spec, and clients do not yet; the message names their nodes.
	ReasonClientsOlder = "ClientsOlder"
	// ReasonProbeUnreachable surfaces when the probe does not answer, or its answer is not authentic; the state of the filesystem is then
	// unknown.
	ReasonProbeUnreachable = "ProbeUnreachable"
	// ReasonMetadataOffline surfaces when the filesystem's metadata server does not answer the probe.
	ReasonMetadataOffline = "MetadataOffline"
	// ReasonTargetsMissing surfaces when storage targets are not online; the message names them.
	ReasonTargetsMissing = "TargetsMissing"
	// ReasonServersMissing surfaces when a metadata server, metalogger or management service is not online; the message names it.
	ReasonServersMissing = "ServersMissing"
	// ReasonDataUnknown surfaces while the filesystem does not report how many copies its data has. It serves meanwhile, and no running daemon
	// is restarted.
	ReasonDataUnknown = "DataUnknown"
	// ReasonChunksEndangered surfaces when data has fewer copies than requested.
	ReasonChunksEndangered = "ChunksEndangered"
	// ReasonPoolsNotPlaced surfaces while the storage classes and directories of pools are not made.
	ReasonPoolsNotPlaced = "PoolsNotPlaced"
	// ReasonClientsAway surfaces when everything is online except mounts on nodes that are not Ready.
	ReasonClientsAway = "ClientsAway"
	// ReasonClientsMissing surfaces when nodes that should mount the filesystem have not.
	ReasonClientsMissing = "ClientsMissing"
	// ReasonDaemonRefused surfaces when a daemon refuses to start; the message is its own.
	ReasonDaemonRefused = "DaemonRefused"
	// ReasonPodsRefused surfaces while the API server refuses pods of the operator; the message has its own words: for Pod Security, a
	// ResourceQuota, a LimitRange, a PriorityClass or a webhook. On a BenchmarkRun as well.
	ReasonPodsRefused = "PodsRefused"
	// ReasonAddressChanged surfaces while mounts use an address of the filesystem that its node no longer has.
	ReasonAddressChanged = "AddressChanged"
	// ReasonPoolFull surfaces when a storage pool takes no new files, and ReasonPoolNearlyFull when it soon will not.
	ReasonPoolFull       = "PoolFull"
	ReasonPoolNearlyFull = "PoolNearlyFull"
	// ReasonUnmatched surfaces when a nodeSelector matches no node.
	ReasonUnmatched = "Unmatched"
	// ReasonChangedByAdmission is the reason of a false PodsAsAsked.
	ReasonChangedByAdmission = "ChangedByAdmission"
	// ReasonPartnersUnproven is the reason of a false PartnersProven; the message names the targets, nodes and disks.
	ReasonPartnersUnproven = "PartnersUnproven"
	// ReasonCertificateExpires, ReasonCertificateExpired and ReasonCertificateUnusable are the reasons of a false CertificateLasts.
	ReasonCertificateExpires  = "CertificateExpires"
	ReasonCertificateExpired  = "CertificateExpired"
	ReasonCertificateUnusable = "CertificateUnusable"
	// ReasonUnsharedMount is the reason of a false MountsShared.
	ReasonUnsharedMount = "UnsharedMount"
	// ReasonVolatileNodes is the reason of a false CopiesLast.
	ReasonVolatileNodes = "VolatileNodes"
	// ReasonDirectoryTargets is the reason of EvaluationOnly.
	ReasonDirectoryTargets = "DirectoryTargets"
	// ReasonNoDevices surfaces when a node has no device that the spec requests; the message names the node and why others don't match.
	ReasonNoDevices = "NoDevices"
	// ReasonServersNotTold surfaces while the agent of a node does not write the node file that its servers read; the message has the remedy.
	ReasonServersNotTold = "ServersNotTold"
	// ReasonRecordsUnread surfaces while a server or target has to wait for its number, because the record on a disk may have that number; the
	// message names the disk.
	ReasonRecordsUnread = "RecordsUnread"
	// ReasonRecordsDisagree surfaces when the records on two disks, or on a disk and in the FileSystem, contradict each other; the message
	// names both.
	ReasonRecordsDisagree = "RecordsDisagree"
	// ReasonTargetsNotReady surfaces while StorageTargets are not proven; the message names them and what each waits for.
	ReasonTargetsNotReady = "TargetsNotReady"
	// ReasonPinningConflict surfaces when cpuPinning contradicts the node or itself; the message names both sides.
	ReasonPinningConflict = "PinningConflict"
	// ReasonNodesUnlabeled and ReasonCopiesTogether are the reasons of a false Spread: nodes have no label with their failure domain, and
	// copies of the same data are in one.
	ReasonNodesUnlabeled = "NodesUnlabeled"
	ReasonCopiesTogether = "CopiesTogether"
	// ReasonAsAsked and ReasonDrifted are the reasons of Pinned; AsAsked is that of a true Spread and of a true TransportAsSpecified, too.
	ReasonAsAsked = "AsAsked"
	// ReasonTCPInUse and ReasonTransportUnknown are the reasons of a TransportAsSpecified that is false or unknown: servers or clients offer
	// TCP only, or their transports are unknown.
	ReasonTCPInUse         = "TCPInUse"
	ReasonTransportUnknown = "TransportUnknown"
	// ReasonDrifted surfaces when a daemon runs on other CPUs, or with another memory policy, than the spec asks for.
	ReasonDrifted = "Drifted"
	// ReasonVerified is the reason of a true BackedUp; the message names the oldest of the newest backups.
	ReasonVerified = "Verified"
	// ReasonBackupsNotConfigured surfaces while a filesystem whose metadata can be backed up has no spec.backups.
	ReasonBackupsNotConfigured = "NotConfigured"
	// ReasonBackupPending surfaces until each place has had its first attempt.
	ReasonBackupPending = "Pending"
	// ReasonBackupFailed surfaces when the newest attempt at a place left no verified backup; the message shows why.
	ReasonBackupFailed = "Failed"
	// ReasonBackupTooOld surfaces when the newest verified backup of a place is older than the last time but one of the schedule.
	ReasonBackupTooOld = "TooOld"
	// ReasonBackupsInvalid surfaces when spec.backups is invalid, for example because of an unknown time zone; the message has the reason.
	ReasonBackupsInvalid = "InvalidBackups"
	// ReasonBackupDamaged is the reason of the event for a verified backup that has changed since its verification; the message names it.
	ReasonBackupDamaged = "BackupDamaged"
	// ReasonCopiesProven is the reason of a true MetadataCopies, ReasonCopiesUnread that of an unknown one, and ReasonCopiesUnproven that of a
	// false one: a copy can't be read, or is not kept; the message names it, with the reason and the time. It is a reason of Degraded, too.
	ReasonCopiesProven   = "CopiesProven"
	ReasonCopiesUnread   = "CopiesUnread"
	ReasonCopiesUnproven = "CopiesUnproven"
	// ReasonRecoveryLooking, ReasonRecoveryChoice, ReasonRecoveryApproval, ReasonRecoveryRefused and ReasonRecoveryFailed are the reasons of a
	// false Recovering. The places are searched; a person has to choose one of two equal candidates; a person has to approve the plan; the
	// request is impossible; the recovery has failed. The message has the next step.
	ReasonRecoveryLooking  = "Looking"
	ReasonRecoveryChoice   = "ChoiceNeeded"
	ReasonRecoveryApproval = "ApprovalNeeded"
	ReasonRecoveryRefused  = "RecoveryRefused"
	ReasonRecoveryFailed   = "RecoveryFailed"
	// ReasonRestoring is the reason of a true Recovering.
	ReasonRestoring = "Restoring"
	// ReasonMetadataRecovered is the reason of the event after a recovery of lost metadata, and of a false Recovering until its annotation is
	// removed.
	ReasonMetadataRecovered = "MetadataRecovered"
	// ReasonDestroyUnconfirmed surfaces when a FileSystem with deletionPolicy Destroy is deleted and confirmDestroy is not its uid.
	ReasonDestroyUnconfirmed = "DestroyUnconfirmed"
	// ReasonNodesAway surfaces while nodes with servers are missing; the message names them, and the next step.
	ReasonNodesAway = "NodesAway"
	// ReasonNodeGivenUp is the reason of a true GivenUp, and of a false Ready beside it.
	ReasonNodeGivenUp = "NodeGivenUp"
	// ReasonGiveUpRefused, ReasonGiveUpWaits and ReasonLossNotAccepted are the reasons of a false GivenUp: the filesystem can't continue
	// without the node, it is unknown yet whether it can, and a person has to accept the loss.
	ReasonGiveUpRefused   = "GiveUpRefused"
	ReasonGiveUpWaits     = "GiveUpWaits"
	ReasonLossNotAccepted = "LossNotAccepted"
	// ReasonTargetMoves is the reason of events: a target moves to the other one of the two nodes that may serve it.
	ReasonTargetMoves = "TargetMoves"
	// ReasonInMaintenance is the reason of a true Maintenance, and of Reconciling of the FileSystem meanwhile.
	ReasonInMaintenance = "InMaintenance"
	// ReasonMaintenanceWaits, ReasonMaintenanceNotAllowed, ReasonMaintenanceTooLong and ReasonRebooted are the reasons of a false Maintenance:
	// the node may not be away yet, it may be away only when a person allows it, it was away for longer than the limit, and it restarted
	// without a maintenance.
	ReasonMaintenanceWaits      = "MaintenanceWaits"
	ReasonMaintenanceNotAllowed = "MaintenanceNotAllowed"
	ReasonMaintenanceTooLong    = "MaintenanceTooLong"
	ReasonRebooted              = "RebootedUnasked"
	// ReasonRecordKept surfaces on a deleted FileSystemNode while any of its servers has not retired.
	ReasonRecordKept = "RecordKept"
	// ReasonReleasing surfaces while the disks of a deleted FileSystem are unmounted or wiped; the message names those that are left.
	ReasonReleasing = "Releasing"
	// ReasonLicenseMissing surfaces when BeeGFS 8 refuses a part of the spec without a license, such as storage pools; the message has the
	// consequences. It is also the reason of the condition Licensed.
	ReasonLicenseMissing = "LicenseMissing"
	// ReasonLicenseValid is the reason of Licensed while all that the spec asks for is licensed.
	ReasonLicenseValid = "LicenseValid"
	// ReasonDataInconsistent surfaces when a mirrored target or metadata server needs a resync, or is bad.
	ReasonDataInconsistent = "DataInconsistent"
	// ReasonUnknownMembers surfaces when the management service lists servers or targets whose number the operator did not assign, or another
	// daemon under an assigned number; the message names them. None is removed.
	ReasonUnknownMembers = "UnknownMembers"
	// ReasonBenchmarkRunning is the reason of ChangesHeld; the message names the run and what waits.
	ReasonBenchmarkRunning = "BenchmarkRunning"
	// ReasonBenchmarkStopping is the reason of ChangesHeld while a maintenance, a disk that is to be emptied or a recovery waits: a
	// BenchmarkRun aborts its repetition for it.
	ReasonBenchmarkStopping = "BenchmarkStopping"
	// ReasonDeleting surfaces while the daemons of a deleted FileSystem are stopped.
	ReasonDeleting = "Deleting"
)

// Reasons of the conditions of a BenchmarkRun.
const (
	// ReasonAllPointsSucceeded surfaces when every point has a result.
	ReasonAllPointsSucceeded = "AllPointsSucceeded"
	// ReasonPointsFailed surfaces when the run is over and some points have no result.
	ReasonPointsFailed = "PointsFailed"
	// ReasonExpectationsMet surfaces when the results meet every expectation.
	ReasonExpectationsMet = "ExpectationsMet"
	// ReasonExpectationsNotMet surfaces when one of the expectations is not met.
	ReasonExpectationsNotMet = "ExpectationsNotMet"
	// ReasonExpectationsUndecided surfaces when the results prove neither.
	ReasonExpectationsUndecided = "ExpectationsUndecided"
	// ReasonExpectationsPending surfaces until the points that decide have ended.
	ReasonExpectationsPending = "ExpectationsPending"
	// ReasonTimedOut surfaces when limits.timeout was reached before every point was run.
	ReasonTimedOut = "TimedOut"
	// ReasonSuspended surfaces while spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonRunning surfaces while points are being run.
	ReasonRunning = "Running"
	// ReasonWaitingForFileSystem surfaces while the FileSystem is absent or not Ready.
	ReasonWaitingForFileSystem = "WaitingForFileSystem"
	// ReasonWaitingForVolume surfaces while the PersistentVolumeClaim that a run measures is absent, not bound, lost or being deleted.
	ReasonWaitingForVolume = "WaitingForVolume"
	// ReasonVolumeNotBound surfaces on a run that has ended because the claim that it made of a StorageClass was not bound in time.
	ReasonVolumeNotBound = "VolumeNotBound"
	// ReasonWaitingForRun surfaces while another BenchmarkRun uses the same target.
	ReasonWaitingForRun = "WaitingForRun"
	// ReasonNoClients surfaces when no node, or too few, match clients.nodeSelector and mount the filesystem.
	ReasonNoClients = "NoClients"
	// ReasonMPIOperatorMissing surfaces when a distributed run finds no MPIJob API in the cluster.
	ReasonMPIOperatorMissing = "MPIOperatorMissing"
	// ReasonCleaningUp surfaces while the run's files are removed from the filesystem.
	ReasonCleaningUp = "CleaningUp"
	// ReasonImageRequired surfaces when no image has the tool, or the image lacks a program that the tool needs; the message has the remedy.
	ReasonImageRequired = "ImageRequired"
	// ReasonPreflight surfaces while the image, the space and the mounts are checked before the first point.
	ReasonPreflight = "Preflight"
	// ReasonPreflightFailed surfaces when the run can't succeed in the present state, such as for lack of space; the message is one sentence.
	ReasonPreflightFailed = "PreflightFailed"
	// ReasonFileSystemInUse surfaces while another holder has the lease of the FileSystem: a change of it, or another run.
	ReasonFileSystemInUse = "FileSystemInUse"
	// ReasonQueued surfaces while a job of the run waits in its queue.
	ReasonQueued = "Queued"
	// ReasonQuotaExceeded surfaces while a quota of the namespace keeps the pods of a job from being made.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonDroppingCaches surfaces while the agents drop caches before a repetition or phase.
	ReasonDroppingCaches = "DroppingCaches"
	// ReasonPausing surfaces during spec.pause.
	ReasonPausing = "Pausing"
	// ReasonBackendUnsupported surfaces when the tool measures another type of filesystem, as mds-survey does.
	ReasonBackendUnsupported = "BackendUnsupported"
)

// Reasons of the conditions of a BenchmarkSuite, besides those of a BenchmarkRun.
const (
	// ReasonAllRunsSucceeded surfaces when every run of every variant has all its results.
	ReasonAllRunsSucceeded = "AllRunsSucceeded"
	// ReasonRunsFailed surfaces when the suite is over and some run has no result; the message names the first.
	ReasonRunsFailed = "RunsFailed"
	// ReasonNameTaken surfaces when there is a FileSystem or BenchmarkRun of a name that the suite needs, and the suite did not make it.
	ReasonNameTaken = "NameTaken"
	// ReasonDestroyRefused surfaces when afterVariant is Destroy and a variant's FileSystem has taken over disks that it did not format.
	ReasonDestroyRefused = "DestroyRefused"
	// ReasonWaitingForVariant surfaces while a variant's FileSystem is not Ready, or not yet deleted.
	ReasonWaitingForVariant = "WaitingForVariant"
)

// Names that the operator puts on its objects.
const (
	// Finalizer keeps an object until the operator has stopped everything that belongs to it.
	Finalizer = "parallelfs.dev/finalizer"
	// LabelFileSystem names the FileSystem that an object belongs to.
	LabelFileSystem = "parallelfs.dev/filesystem"
	// LabelBenchmarkRun names the BenchmarkRun that an object belongs to.
	LabelBenchmarkRun = "parallelfs.dev/benchmarkrun"
	// LabelBenchmarkSuite names the BenchmarkSuite that an object belongs to.
	LabelBenchmarkSuite = "parallelfs.dev/benchmarksuite"
	// LabelComponent is the role of a pod, such as master, chunkserver, meta, storage, client or benchmark.
	LabelComponent = "parallelfs.dev/component"
	// LabelSlot is the slot of a metadata server among those of its node.
	LabelSlot = "parallelfs.dev/slot"
	// LabelStoragePool names the storage pool that an object serves.
	LabelStoragePool = "parallelfs.dev/storage-pool"
	// LabelBackup names the FileSystem that a Job or ConfigMap of a backup belongs to. These are no children in the sense of LabelFileSystem:
	// the schedule makes and removes them, they disturb no program, and they hold no lease.
	LabelBackup = "parallelfs.dev/backup-of"
	// LabelGuard names the FileSystem that a guard of a node belongs to: a Deployment of one pod, and its PodDisruptionBudget.
	LabelGuard = "parallelfs.dev/guard-of"
	// LabelGuarded distinguishes the guards of a FileSystem.
	LabelGuarded = "parallelfs.dev/guarded"
	// LabelGuardOwner on the pod of a guard names its FileSystem among all of the cluster (backend.ClusterName), for selectors of pods in all
	// namespaces, as `kubectl drain --pod-selector` has.
	LabelGuardOwner = "parallelfs.dev/guard-owner"
	// LabelImages names the FileSystem for which a DaemonSet brings an image to nodes, before daemons are restarted with it, and LabelImage
	// distinguishes those of a FileSystem. They are no children in the sense of LabelFileSystem.
	LabelImages = "parallelfs.dev/images-of"
	LabelImage  = "parallelfs.dev/image"
	// LabelRecovery names the FileSystem that a Job of a recovery belongs to. It is no child in the sense of LabelFileSystem.
	LabelRecovery = "parallelfs.dev/recovery-of"
	// LabelCheck names the FileSystem that the Job of a check belongs to. It is no child in the sense of LabelFileSystem.
	LabelCheck = "parallelfs.dev/check-of"
	// LabelCopies names the FileSystem whose copies of the metadata a Job reads back. It is no child in the sense of LabelFileSystem.
	LabelCopies = "parallelfs.dev/metadata-copies-of"
	// LabelNode names the node of a StorageTarget or FileSystemNode, when the name is a valid label value.
	LabelNode = "parallelfs.dev/node"
	// LabelAgent selects the nodes that run an agent.
	LabelAgent = "parallelfs.dev/agent"
	// AnnotationSuite on a FileSystem is the uid of the BenchmarkSuite that made it.
	AnnotationSuite = "parallelfs.dev/suite-uid"
	// AnnotationAcceptDevice on a StorageTarget, with the value of its status.newDevice.hash, accepts that its disk has that identity from now
	// on. It applies to no other identity, and only until it was accepted.
	AnnotationAcceptDevice = "parallelfs.dev/accept-device"

	// AnnotationReplaceDisk on a StorageTarget that is one side of a buddy group of a BeeGFS, and whose disk is lost, asks for another disk of
	// its node with the same number. With the value "plan", the message of its condition Online names the disk and the hash of the plan. With
	// that hash as the value, the plan is carried out.
	AnnotationReplaceDisk = "parallelfs.dev/replace-disk"
	// ReplacePlan is the value of AnnotationReplaceDisk that asks for a plan.
	ReplacePlan = "plan"

	// AnnotationGiveUp on a StorageTarget, with the name of its node as the value, removes a deleted target although the node can't release
	// it: the data on the disk stays there. On a FileSystemNode, it states that the node never comes back: the filesystem continues without
	// it, as long as the annotation is present.
	AnnotationGiveUp = "parallelfs.dev/give-up"
	// AnnotationAcceptLoss on a FileSystemNode, with the word from its condition GivenUp as the value, accepts that the data named by the
	// condition is lost with the node. It applies to no other loss.
	AnnotationAcceptLoss = "parallelfs.dev/accept-loss"
	// AnnotationAllowMaintenance on a FileSystemNode, with the word from its condition Maintenance as the value, permits the maintenance of
	// the node in any state of the filesystem. It does not apply after the next start of the node.
	AnnotationAllowMaintenance = "parallelfs.dev/allow-maintenance"
	// AnnotationMachineIsOff on a StorageTarget of two nodes states that the machine of its holder is off: the other node takes the target
	// over without a hand-over. The value is the holder and how often the target was handed over ("oss1/0").
	AnnotationMachineIsOff = "parallelfs.dev/machine-is-off"
	// AnnotationTakeUpNodeImage on a FileSystem, with the operator's node image as the value, restarts the servers that run with another one.
	// It applies to this image only, not to the next one.
	AnnotationTakeUpNodeImage = "parallelfs.dev/take-up-node-image"
	// AnnotationRecoverMetadata on a FileSystem requests the recovery of lost metadata: with the value RecoverPlan a plan, with the hash of
	// that plan its execution.
	AnnotationRecoverMetadata = "parallelfs.dev/recover-metadata"
	// RecoverPlan is the value of AnnotationRecoverMetadata that asks for a plan.
	RecoverPlan = "plan"
	// AnnotationRecoverFrom on a FileSystem names the candidate of status.recovery that is used.
	AnnotationRecoverFrom = "parallelfs.dev/recover-from"
	// AnnotationConfirmDelete on a FileSystem, with its name as the value, permits its deletion while nodes have mounted it. An admission
	// policy of the chart requires it.
	AnnotationConfirmDelete = "filesystem.parallelfs.dev/confirm-delete"
	// AnnotationCheck on a FileSystem requests a check for damage, which changes nothing. The value is any word: each new one requests another
	// check, and status.check has the result of the last one.
	AnnotationCheck = "parallelfs.dev/check"
	// AnnotationBackUp on a FileSystem requests a backup now, at each place of spec.backups. The value is any word: each new one requests
	// another backup.
	AnnotationBackUp = "parallelfs.dev/back-up"
	// LabelManagedBy and ManagedBy mark every object that the operator writes.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "parallelfs-operator"
)
