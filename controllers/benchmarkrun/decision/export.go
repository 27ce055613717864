package decision

import (
	"fmt"
	"path"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
)

// destination returns where the complete results are copied to, empty for nowhere.
func destination(w *scope.Scope) string {
	spec := w.Run.Spec.Results
	if spec == nil {
		return ""
	}
	var out []string
	if claim := spec.PersistentVolumeClaim; claim != nil {
		out = append(out, fmt.Sprintf("PersistentVolumeClaim %s, directory %s", claim.Name, path.Join(claim.Path, w.ExportDirectory())))
	}
	if store := spec.ObjectStore; store != nil {
		out = append(out, fmt.Sprintf("s3://%s/%s", store.Bucket, path.Join(store.Prefix, w.ExportDirectory())))
	}
	return strings.Join(out, "; ")
}

// decideExport makes a job copy the results. A failure of that is no failure of the run.
func decideExport(w *scope.Scope) (exported string, d Decision, waits bool) {
	to := destination(w)
	if to == "" || strings.Contains(w.Run.Status.Exported, to) {
		return w.Run.Status.Exported, d, false
	}
	d = reconciling(v1alpha1.ReasonCleaningUp, "exporting the complete results to %s", to)
	d.After = w.Poll
	switch c := w.Exporter; {
	case c == nil:
		d.Action = Export
	case c.Succeeded:
		return v1alpha1.Cut(to, scope.MaxExported), d, false
	case c.Failed || w.Now.Sub(c.Created) > scope.ExportTimeout:
		why := fmt.Sprintf("could not be exported to %s: Job %s: %s%s", to, c.Name, c.Message, children.Why(c))
		return v1alpha1.Cut(why, scope.MaxExported), d, false
	}
	return "", d, true
}
