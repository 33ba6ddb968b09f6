package consistencyclient

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func endpoint(address string, ready bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
}

func slice(name, service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(2379))}}, Endpoints: endpoints,
	}
}

// Clients use the ready endpoints of this Service only. While the API server is down they
// use the last known ones.
func TestServiceFindsReadyEndpoints(t *testing.T) {
	down := false
	api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(
		slice("a", "e-client", endpoint("10.0.0.2", true), endpoint("10.0.0.3", false)),
		slice("b", "e-client", endpoint("10.0.0.1", true)), slice("c", "other", endpoint("10.0.0.9", true)),
	).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if down {
				return errors.New("unavailable")
			}
			return c.List(ctx, list, opts...)
		},
	})
	find := Service(api, types.NamespacedName{Namespace: "ns", Name: "e-client"})
	for _, down = range []bool{false, true} {
		got, err := find(t.Context())
		if diff := cmp.Diff([]string{"10.0.0.1:2379", "10.0.0.2:2379"}, got); err != nil || diff != "" {
			t.Errorf("with the API server down = %v: %v %s", down, err, diff)
		}
	}
	if got, err := Service(api, types.NamespacedName{Namespace: "ns", Name: "e-client"})(t.Context()); err == nil {
		t.Errorf("got %v, want an error: no endpoint is known", got)
	}
}
