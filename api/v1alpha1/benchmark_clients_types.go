package v1alpha1

// BenchmarkClients selects the nodes that a benchmark runs on.
type BenchmarkClients struct {
	// nodeSelector selects nodes by their labels, of those that mount the filesystem. The run takes them in the order of their names.
	// Without it, all nodes that mount the filesystem are selected.
	// +optional
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// count is the number of those nodes that are used. Without it, the run takes all nodes that it has processes for; a tool that runs on a
	// single client takes one. A sweep or derive can vary it, as clients.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	Count int32 `json:"count,omitempty"`

	// spread places the processes on the clients. Even gives all clients the same number, or some of them one less. Packed fills a client
	// with maxProcessesPerNode processes (or one for each of its CPUs) before it takes the next client. Defaults to Even.
	// +optional
	// +kubebuilder:default=Even
	Spread ProcessSpread `json:"spread,omitempty"`

	// maxProcessesPerNode is the largest number of processes on one client. A point that does not fit on all clients together is refused.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxProcessesPerNode int32 `json:"maxProcessesPerNode,omitempty"`

	// oversubscribe allows more processes on a client than it has CPUs. Without it, such a point is refused, because processes that wait
	// for a CPU measure the client. Defaults to false.
	// +optional
	Oversubscribe bool `json:"oversubscribe,omitempty"`
}

// ProcessSpread sets how processes are placed on clients.
// +kubebuilder:validation:Enum=Even;Packed
type ProcessSpread string

// The ways of placing processes.
const (
	// SpreadEven gives each client as many as the others, or one less.
	SpreadEven ProcessSpread = "Even"
	// SpreadPacked fills one client before the next.
	SpreadPacked ProcessSpread = "Packed"
)
