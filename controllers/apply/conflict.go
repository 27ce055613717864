package apply

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// catchUp is the time that a cache gets to see what was written last.
const catchUp = 200 * time.Millisecond

// Again turns a conflict into another pass a moment later: it means that the cache is behind the API server, which is no
// error, and nothing was written. Any other result of a pass is left as it is.
func Again(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}
	return result, err
}
