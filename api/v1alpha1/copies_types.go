package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MetadataCopyResult is whether a copy of the metadata is proven.
// +kubebuilder:validation:Enum=Proven;Unread;Refused
type MetadataCopyResult string

const (
	// MetadataCopyProven is a copy that the filesystem's own program has read back.
	MetadataCopyProven MetadataCopyResult = "Proven"
	// MetadataCopyUnread is a copy that was not read since its server follows, or that could not be inspected.
	MetadataCopyUnread MetadataCopyResult = "Unread"
	// MetadataCopyRefused is a copy that the filesystem's own program can't read.
	MetadataCopyRefused MetadataCopyResult = "Refused"
)

// MaxMetadataCopies is how many copies of the metadata a FileSystem's status lists.
const MaxMetadataCopies = 4

// MetadataCopyStatus is the state of a copy of the metadata that a running server keeps, such as a metalogger.
type MetadataCopyStatus struct {
	// node that has the copy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// result is whether the copy is proven. Only a proven copy counts.
	// +required
	Result MetadataCopyResult `json:"result,omitempty"`

	// since is when the result last changed.
	// +required
	Since metav1.Time `json:"since,omitzero"`

	// follows identifies the starts of the servers since which the copy follows the metadata; empty while its server does not follow. When it
	// changes, the copy is read again.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Follows string `json:"follows,omitempty"`

	// followed is when the operator first saw that.
	// +optional
	Followed *metav1.Time `json:"followed,omitempty"`

	// breaks counts how often its server stopped following by itself. A start of the master, and a restart to fetch the copy, don't count.
	// After an hour without a break it is 0 again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Breaks int32 `json:"breaks,omitempty"`

	// breaksSince is when the first of these breaks was seen.
	// +optional
	BreaksSince *metav1.Time `json:"breaksSince,omitempty"`

	// reading is when the operator decided to read the copy; absent while it is not being read.
	// +optional
	Reading *metav1.Time `json:"reading,omitempty"`

	// readingVersion is the version of the running metadata when the operator decided that; absent if the filesystem did not report it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadingVersion int64 `json:"readingVersion,omitempty"`

	// checked is when the copy was last read, whatever the result, and job is the Job that did.
	// +optional
	Checked *metav1.Time `json:"checked,omitempty"`

	// job is the Job that has read the copy last.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Job string `json:"job,omitempty"`

	// proven is when the copy was last proven.
	// +optional
	Proven *metav1.Time `json:"proven,omitempty"`

	// version of the metadata that was made from it then, as the filesystem counts it: MooseFS counts each change.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Version int64 `json:"version,omitempty"`

	// behind is how many changes that metadata lacked: those that the running metadata had when the operator decided to read the copy. It is
	// absent if the filesystem did not report its version then.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Behind *int64 `json:"behind,omitempty"`

	// id of that metadata, as the filesystem itself names it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	ID string `json:"id,omitempty"`

	// dataTime is the time of the last change in it.
	// +optional
	DataTime *metav1.Time `json:"dataTime,omitempty"`

	// failures counts how often it could not be read since it was proven, or since its server follows again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failures int32 `json:"failures,omitempty"`

	// retry is when it is read again after a failure.
	// +optional
	Retry *metav1.Time `json:"retry,omitempty"`

	// fetches counts how often its server was restarted to fetch it again since it was last proven, and fetched is when that was decided
	// last.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Fetches int32 `json:"fetches,omitempty"`

	// fetched is when it was last decided to fetch the copy again.
	// +optional
	Fetched *metav1.Time `json:"fetched,omitempty"`

	// message is the reason why the copy is not proven; empty for a proven one.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
