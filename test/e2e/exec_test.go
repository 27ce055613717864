//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/test/patience"
)

// execLimit is much longer than a command in a pod takes.
var execLimit = patience.Bound(15 * time.Minute)

// inPod is `kubectl [-n NAMESPACE] exec [-i] POD [-c CONTAINER] -- COMMAND...`, without the 0.1 s of CPU time for the start of kubectl,
// because tests execute in pods thousands of times. isExec is false for other commands, and for objects that are no pods.
func inPod(input string, args []string) (out string, isExec bool, err error) {
	namespace, pod, container := "default", "", ""
	var command []string
	for i := 0; i < len(args) && command == nil; i++ {
		switch {
		case args[i] == "-n" || args[i] == "-c":
			if i+1 == len(args) {
				return "", false, nil
			}
			if args[i] == "-n" {
				namespace = args[i+1]
			} else {
				container = args[i+1]
			}
			i++
		case args[i] == "exec":
			isExec = true
		case args[i] == "-i":
		case args[i] == "--":
			command = slices.Clone(args[i+1:])
		case isExec && pod == "" && !strings.Contains(args[i], "/") && !strings.HasPrefix(args[i], "-"):
			pod = args[i]
		default:
			return "", false, nil
		}
	}
	if !isExec || pod == "" || len(command) == 0 {
		return "", false, nil
	}
	out, err = stream(namespace, pod, container, input, command)
	return out, true, err
}

func stream(namespace, pod, container, input string, command []string) (string, error) {
	if container == "" {
		var into corev1.Pod
		if err := api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: pod}, &into); err != nil {
			return "", err
		}
		container = into.Spec.Containers[0].Name // as kubectl does
	}
	core := rest.CopyConfig(kube)
	core.APIPath, core.GroupVersion, core.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(core)
	if err != nil {
		return "", err
	}
	url := c.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: command, Stdin: input != "", Stdout: true, Stderr: true,
	}, clientgoscheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(kube, "GET", url.String())
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), execLimit)
	defer cancel()
	var out, complaint strings.Builder
	options := remotecommand.StreamOptions{Stdout: &out, Stderr: &complaint}
	if input != "" {
		options.Stdin = strings.NewReader(input)
	}
	if err := executor.StreamWithContext(ctx, options); err != nil {
		return out.String(), fmt.Errorf("%w: %s%s", err, out.String(), complaint.String())
	}
	return out.String(), nil
}
