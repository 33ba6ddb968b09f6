package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/localkube/networkpolicy"
	"github.com/governor-dev/governor/localkube/storage"
)

const (
	pauseImage = "registry.k8s.io/pause:3.10"
	dnsImage   = "registry.k8s.io/coredns/coredns:v1.15.0"
)

// SystemImages are the recipes of the images that every node has.
func SystemImages() []string { return []string{"pause", "coredns"} }

//go:embed templates/addons.yaml
var addonsTemplate string

// addons are the objects that make the cluster complete: the rights of its components, DNS, the storage classes.
func (c *Cluster) addons() ([]byte, error) {
	t, err := template.New("addons").Parse(addonsTemplate)
	if err != nil {
		return nil, err
	}
	role := storage.ClusterRole()
	var out bytes.Buffer
	if err := t.Execute(&out, map[string]any{
		"ProvisionerRole": role.Name,
		"ProvisionerUser": storage.User,
		"NetworkPolicy":   networkpolicy.User,
		"DNSImage":        dnsImage,
		"DNS":             c.Plan.Service(10),
	}); err != nil {
		return nil, err
	}
	objects := []runtime.Object{role, networkpolicy.ClusterRole()}
	for _, class := range storage.Classes() {
		objects = append(objects, class)
	}
	for _, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", data)
	}
	return out.Bytes(), nil
}

func (c *Cluster) applyAddons(ctx context.Context) error {
	manifest, err := c.addons()
	if err != nil {
		return err
	}
	apply := exec.CommandContext(ctx, c.Binary("kubectl"), "--kubeconfig", c.AdminKubeconfig(),
		"apply", "--server-side", "--force-conflicts", "--field-manager=localkube", "-f", "-")
	apply.Stdin = bytes.NewReader(manifest)
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the addons: %w: %s", err, out)
	}
	return nil
}

// Provision runs the provisioner of the cluster of that name until ctx ends.
func Provision(ctx context.Context, name string) error {
	c, err := Open(name)
	if err != nil {
		return err
	}
	return storage.Run(ctx, storage.Config{Kubeconfig: c.path("provisioner.kubeconfig"), Root: c.path("volumes")})
}
