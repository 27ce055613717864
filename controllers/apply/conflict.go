package apply

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// catchUp is the time for a cache to receive the last write.
const catchUp = 200 * time.Millisecond

// Again turns a conflict into another pass a moment later. A conflict means that the cache is behind the API server; it is not an error,
// and nothing was written. Other results of a pass are returned unchanged.
func Again(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}
	return result, err
}
