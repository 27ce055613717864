package v1alpha1

// DiskState is the state of a disk by its own report.
// +kubebuilder:validation:Enum=Healthy;Suspect;Failing
type DiskState string

// The states of disks.
const (
	// DiskHealthy is a disk that reports no problem.
	DiskHealthy DiskState = "Healthy"
	// DiskSuspect is a disk that serves and has problems that data may be lost by later: unreadable sectors, worn out flash, heat.
	DiskSuspect DiskState = "Suspect"
	// DiskFailing is a disk that reports its own failure.
	DiskFailing DiskState = "Failing"
)

// DiskHealth is a disk's report about itself: SMART, or the health log of NVMe.
type DiskHealth struct {
	// state is Healthy, Suspect or Failing.
	// +required
	State DiskState `json:"state,omitempty"`
	// reasons name what is wrong, the worst first, such as "16 sectors can't be read".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=128
	Reasons []string `json:"reasons,omitempty"`
}
