package agent

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/telemetry"
)

// sample starts the sampling of disks and daemons and serves the samples, and the metrics of more.
func sample(
	mgr manager.Manager, node Node, targets func(context.Context) ([]v1alpha1.StorageTarget, error), o Options, more ...prometheus.Collector,
) error {
	log := mgr.GetLogger().WithName("telemetry")
	report := func(err error) {
		if err != nil {
			log.Error(err, "Not everything can be sampled")
		} else {
			log.Info("Everything can be sampled again")
		}
	}
	sampler := telemetry.New(telemetry.Host{
		Proc: "/proc", Daemons: node.Processes, Report: report,
		Targets: func(ctx context.Context) ([]telemetry.Target, error) {
			all, err := targets(ctx)
			return mounted(all), err
		},
	}, o.TelemetryInterval)
	if err := mgr.Add(runnable(func(ctx context.Context) error { sampler.Run(ctx); return nil })); err != nil {
		return err
	}
	return mgr.Add(runnable(func(ctx context.Context) error {
		telemetry.Serve(ctx, o.TelemetryAddress, sampler.Handler(o.NodeName, more...), func(err error) { log.Error(err, "It is tried again") })
		return nil
	}))
}

// mounted returns the mounted targets with their names in the telemetry.
func mounted(all []v1alpha1.StorageTarget) []telemetry.Target {
	var out []telemetry.Target
	for i := range all {
		if t := &all[i]; t.Status.MountPath != "" {
			out = append(out, telemetry.Target{Name: t.Namespace + "/" + t.Spec.FileSystem.Name + "/" + t.Name, Path: t.Status.MountPath})
		}
	}
	return out
}
