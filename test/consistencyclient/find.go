package consistencyclient

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service finds the members to which the Service routes clients. While the API server is
// down it returns the last known ones, as a node's proxy does.
func Service(reader client.Reader, service types.NamespacedName) Find {
	var mu sync.Mutex
	var last []string
	return func(ctx context.Context) ([]string, error) {
		var slicesOf discoveryv1.EndpointSliceList
		err := reader.List(ctx, &slicesOf, client.InNamespace(service.Namespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			last = addresses(slicesOf.Items)
		case len(last) == 0:
			return nil, fmt.Errorf("cannot list the endpoints of the Service %s: %w", service, err)
		}
		return slices.Clone(last), nil
	}
}

// addresses returns the addresses of the ready endpoints, at the first port.
func addresses(all []discoveryv1.EndpointSlice) []string {
	var found []string
	for _, s := range all {
		if len(s.Ports) == 0 || s.Ports[0].Port == nil {
			continue
		}
		port := strconv.Itoa(int(*s.Ports[0].Port))
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready && len(e.Addresses) > 0 {
				found = append(found, net.JoinHostPort(e.Addresses[0], port))
			}
		}
	}
	slices.Sort(found)
	return found
}
