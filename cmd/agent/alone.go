package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"parallelfs.dev/operator/internal/node/agent"
	"parallelfs.dev/operator/internal/node/nodelock"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// lockPause is the time between two attempts to take the lock of the node.
	lockPause = 5 * time.Second
	// sayEvery is the time between two logs of an agent that waits for another one.
	sayEvery = time.Minute
	// reasonAnotherAgent is that of the event of a node on which two agents run.
	reasonAnotherAgent = "AnotherAgent"
)

// alone waits until no other agent works on this node, and says meanwhile which one does.
func alone(ctx context.Context, path, self string, pause time.Duration, say func(sentence string)) (io.Closer, error) {
	var said time.Time
	return nodelock.Wait(ctx, path, self, pause, func(holder string) {
		if time.Since(said) < sayEvery {
			return
		}
		said = time.Now()
		say(fmt.Sprintf("agent %s works on this node, so agent %s does nothing with its disks: remove one of the two installations "+
			"of the operator. This agent begins when that one has ended (lock of %s)", holder, self, path))
	})
}

// saying writes the sentences of an agent that waits into its log and into events of the node.
func saying(ctx context.Context, config *rest.Config, node string, log logr.Logger) (say func(sentence string), end func(), err error) {
	client, err := eventsv1.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make the client of events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("start the events: %w", err)
	}
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), "parallelfs-"+agent.Name)
	// The events that kubectl describe node shows have the name of the node as the uid, like those of the kubelet.
	regarding := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)}
	return func(sentence string) {
		log.Error(nil, sentence)
		recorder.Eventf(regarding, nil, corev1.EventTypeWarning, reasonAnotherAgent, "Wait", "%s", sentence)
	}, broadcaster.Shutdown, nil
}

// thisPod is the name of the pod of this agent, with its namespace; outside of a pod, that of the process.
func thisPod() string {
	if namespace, name := os.Getenv("POD_NAMESPACE"), os.Getenv("POD_NAME"); namespace != "" && name != "" {
		return namespace + "/" + name
	}
	return fmt.Sprintf("of process %d", os.Getpid())
}

// onlyAgent takes the lock of this node.
func onlyAgent(ctx context.Context, config *rest.Config, node string, log logr.Logger) (io.Closer, error) {
	say, end, err := saying(ctx, config, node, log)
	if err != nil {
		return nil, err
	}
	defer end()
	return alone(ctx, spec.AgentLock, thisPod(), lockPause, say)
}
