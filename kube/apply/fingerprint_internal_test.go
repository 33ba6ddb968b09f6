package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestFingerprint(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*corev1.ConfigMap)
		same   bool
	}{
		"Same":    {"two renderings of the same object are equal", func(*corev1.ConfigMap) {}, true},
		"Version": {"the version to write over is not part of the content", func(c *corev1.ConfigMap) { c.ResourceVersion = "7" }, true},
		"Data":    {"other data is another object", func(c *corev1.ConfigMap) { c.Data["state"] = "existing" }, false},
		"Label":   {"another label is another object", func(c *corev1.ConfigMap) { c.Labels["app"] = "b" }, false},
	}
	a := &Applier{client: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}
	render := func() *corev1.ConfigMap {
		c := &corev1.ConfigMap{Data: map[string]string{"state": "new", "token": "t", "config": "Disabled"}}
		c.Name, c.Labels = "config", map[string]string{"app": "a", "instance": "i"}
		return c
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			other := render()
			c.edit(other)
			_, first, err := a.fingerprint(render())
			if err != nil {
				t.Fatal(err)
			}
			_, second, err := a.fingerprint(other)
			if err != nil {
				t.Fatal(err)
			}
			if same := first == second; same != c.same {
				t.Errorf("%s: the same: %t", c.reason, same)
			}
		})
	}
}
