package driver

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/kube/dryrun"
)

// tryTemplate runs a dry run of a pod of the present template while pods of another template exist.
func (d Driver) tryTemplate(ctx context.Context, obj *appv1.PodSet, seen podset.World) (podset.World, error) {
	template := podset.Fingerprint(obj)
	if len(seen.Outdated(template)) == 0 {
		return seen, nil
	}
	pods := podset.NewPods(obj.Name, seen, 1)
	seen.Template = d.templates.Try(ctx, d.client, obj.UID, template, podset.PodFor(obj, template, pods[0].Name, 0))
	if seen.Template.Unknown != "" {
		return seen, fmt.Errorf("cannot dry-run a pod of the present template: %s", seen.Template.Unknown)
	}
	return seen, nil
}

// TryTemplate returns the world with the API server's answer to a dry run of a pod of want, for a
// preview.
func TryTemplate(ctx context.Context, c client.Client, want *appv1.PodSet, seen podset.World) podset.World {
	template := podset.Fingerprint(want)
	if len(seen.Outdated(template)) > 0 {
		pods := podset.NewPods(want.Name, seen, 1)
		seen.Template = dryrun.Try(ctx, c, template, podset.PodFor(want, template, pods[0].Name, 0))
	}
	return seen
}
