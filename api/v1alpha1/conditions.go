package v1alpha1

// Condition types of both kinds, in the vocabulary of kstatus
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
const (
	// ConditionReady is true when the filesystem itself says that every server and target takes part and every client is mounted.
	ConditionReady = "Ready"
	// ConditionSucceeded is true when every point of a run has a result, false when the run ended with failed points or was refused.
	ConditionSucceeded = "Succeeded"
	// ConditionReconciling is true while the operator works on it, and absent otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when nothing goes on until a person changes something, and absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionEvaluationOnly is true while targets are directories: nothing proves that they are on the disks that they were on.
	ConditionEvaluationOnly = "EvaluationOnly"
)

// Reasons of the conditions of a FileSystem.
const (
	// ReasonHealthy surfaces when everything takes part.
	ReasonHealthy = "Healthy"
	// ReasonInvalidSpec surfaces when the spec contradicts itself or the cluster; the message names the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonOptionRefused surfaces when spec.config names an option that the operator owns or the daemon does not know.
	ReasonOptionRefused = "OptionRefused"
	// ReasonNoNodes surfaces when a nodeSelector matches no node.
	ReasonNoNodes = "NoNodes"
	// ReasonTooManyNodes surfaces when the metadata nodeSelector matches more nodes than the filesystem can use.
	ReasonTooManyNodes = "TooManyNodes"
	// ReasonPortConflict surfaces when another FileSystem uses the same ports on the same node.
	ReasonPortConflict = "PortConflict"
	// ReasonDirectoryConflict surfaces when another FileSystem uses the same directory on the same node.
	ReasonDirectoryConflict = "DirectoryConflict"
	// ReasonStarting surfaces while daemons start for the first time.
	ReasonStarting = "Starting"
	// ReasonRestarting surfaces while the operator restarts daemons, one at a time, to apply a changed spec.
	ReasonRestarting = "Restarting"
	// ReasonProbeUnreachable surfaces when the probe does not answer; the state of the filesystem is then unknown.
	ReasonProbeUnreachable = "ProbeUnreachable"
	// ReasonMetadataOffline surfaces when the filesystem's metadata server does not answer the probe.
	ReasonMetadataOffline = "MetadataOffline"
	// ReasonTargetsMissing surfaces when storage targets are not online; the message names them.
	ReasonTargetsMissing = "TargetsMissing"
	// ReasonServersMissing surfaces when servers other than targets' are not online; the message names them.
	ReasonServersMissing = "ServersMissing"
	// ReasonChunksEndangered surfaces when data has fewer copies than asked for.
	ReasonChunksEndangered = "ChunksEndangered"
	// ReasonPoolsNotPlaced surfaces while the storage classes and directories of pools are not made.
	ReasonPoolsNotPlaced = "PoolsNotPlaced"
	// ReasonClientsMissing surfaces when nodes that should mount the filesystem have not.
	ReasonClientsMissing = "ClientsMissing"
	// ReasonDaemonRefused surfaces when a daemon refuses to start; the message is its own.
	ReasonDaemonRefused = "DaemonRefused"
	// ReasonDirectoryTargets is the reason of EvaluationOnly.
	ReasonDirectoryTargets = "DirectoryTargets"
	// ReasonDeleting surfaces while the daemons of a deleted FileSystem are stopped.
	ReasonDeleting = "Deleting"
)

// Reasons of the conditions of a BenchmarkRun.
const (
	// ReasonAllPointsSucceeded surfaces when every point has a result.
	ReasonAllPointsSucceeded = "AllPointsSucceeded"
	// ReasonPointsFailed surfaces when the run is over and some points have no result.
	ReasonPointsFailed = "PointsFailed"
	// ReasonTimedOut surfaces when limits.timeout was reached before every point was run.
	ReasonTimedOut = "TimedOut"
	// ReasonSuspended surfaces while spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonRunning surfaces while points are being run.
	ReasonRunning = "Running"
	// ReasonWaitingForFileSystem surfaces while the FileSystem is absent or not Ready.
	ReasonWaitingForFileSystem = "WaitingForFileSystem"
	// ReasonWaitingForRun surfaces while another BenchmarkRun uses the same FileSystem.
	ReasonWaitingForRun = "WaitingForRun"
	// ReasonNoClients surfaces when no node, or too few, match clients.nodeSelector and mount the filesystem.
	ReasonNoClients = "NoClients"
	// ReasonMPIOperatorMissing surfaces when a distributed run finds no MPIJob API in the cluster.
	ReasonMPIOperatorMissing = "MPIOperatorMissing"
	// ReasonCleaningUp surfaces while the run's files are removed from the filesystem.
	ReasonCleaningUp = "CleaningUp"
)

// Names that the operator puts on its objects.
const (
	// Finalizer lets the operator stop what belongs to an object before it goes.
	Finalizer = "parallelfs.dev/finalizer"
	// LabelFileSystem names the FileSystem that an object belongs to.
	LabelFileSystem = "parallelfs.dev/filesystem"
	// LabelBenchmarkRun names the BenchmarkRun that an object belongs to.
	LabelBenchmarkRun = "parallelfs.dev/benchmarkrun"
	// LabelComponent is the role of a pod: master, metalogger, chunkserver, client, storageclasses, benchmark.
	LabelComponent = "parallelfs.dev/component"
	// LabelStoragePool names the storage pool that an object serves.
	LabelStoragePool = "parallelfs.dev/storage-pool"
	// LabelManagedBy and ManagedBy mark every object that the operator writes.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "parallelfs-operator"
)
