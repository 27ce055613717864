package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// requests sends requests to the API server that are not for objects.
type requests struct{ rest.Interface }

// requestsTo returns requests with a kubeconfig.
func requestsTo(config *rest.Config, known *runtime.Scheme) (requests, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	c, err := rest.RESTClientFor(config)
	return requests{c}, err
}

func (r requests) logs(ctx context.Context, namespace, pod, container string, previous bool) (io.ReadCloser, error) {
	return r.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").Param("container", container).
		Param("previous", strconv.FormatBool(previous)).Param("timestamps", "true").Param("tailLines", strconv.Itoa(mostLogLines)).
		Param("limitBytes", strconv.Itoa(mostLog)).Stream(ctx)
}

func (r requests) version(ctx context.Context) (string, error) {
	data, err := r.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var is struct{ GitVersion string }
	if err := json.Unmarshal(data, &is); err != nil {
		return "", fmt.Errorf("read the version of Kubernetes: %w", err)
	}
	return is.GitVersion, nil
}

func (r requests) samples(ctx context.Context, namespace, pod string, port int32, query map[string]string) ([]byte, error) {
	agent := net.JoinSchemeNamePort("http", pod, strconv.Itoa(int(port)))
	request := r.Get().Namespace(namespace).Resource("pods").Name(agent).SubResource("proxy").Suffix("telemetry")
	for name, value := range query {
		request = request.Param(name, value)
	}
	return request.DoRaw(ctx)
}
