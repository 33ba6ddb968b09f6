// Package storage is localkube's dynamic volume provisioner.
//
// Every node of a localkube cluster sees the folders of the host at the same
// path, so a volume is simply a folder on the host: no helper pod, no CSI
// driver and no attach step. On request a volume gets a file system of its own
// (an image file behind a loop device), so that it really has the size that it
// was asked for and can be filled up.
//
// Volumes are PersistentVolumes of type local rather than hostPath, because the
// kubelet applies a pod's fsGroup to the former and ignores it for the latter
// (pkg/volume/local and pkg/volume/hostpath of Kubernetes).
package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// Provisioner is the provisioner name that StorageClasses refer to.
	Provisioner = "localkube.governor.dev/volumes"
	// User is the API user that the provisioner is meant to run as; ClusterRole
	// carries the same name.
	User = "system:localkube-provisioner"
	// EnforceSizeAnnotation on a PersistentVolumeClaim ("true" or "false") tells
	// whether the volume is limited to its size; it wins over the class. It is
	// read when the volume is made, and means nothing afterwards.
	EnforceSizeAnnotation = "localkube.governor.dev/enforce-size"

	// TypeParameter of a StorageClass is TypeLocal (default) or TypeNetwork.
	TypeParameter = "type"
	// EnforceSizeParameter of a StorageClass is "true" or "false" (default).
	EnforceSizeParameter = "enforceSize"
	// TypeLocal volumes are bound to the node of their first pod, like a disk
	// built into it.
	TypeLocal = "local"
	// TypeNetwork volumes follow their pod to any node, like a cloud disk.
	TypeNetwork = "network"
)

const (
	// A failed operation is tried again soon at first: most failures here are
	// fixed by the user, who then watches for the result.
	retryMin = 200 * time.Millisecond
	retryMax = 15 * time.Second
)

// Config says which cluster to serve and where the volumes live.
type Config struct {
	// Kubeconfig is the path of the file to reach the API server with; the user
	// in it needs the permissions of ClusterRole.
	Kubeconfig string
	// Root is the folder that holds the volumes, at the same path on the host
	// and on every node. It is created if missing and becomes a mount point, see
	// Prepare.
	Root string
}

// Run provisions, expands and deletes volumes until ctx ends. It returns an
// error only if it cannot start: an unusable kubeconfig, or a root folder that
// cannot be prepared. Everything that goes wrong later is reported as an event
// on the claim or volume concerned, and tried again.
func Run(ctx context.Context, cfg Config) error {
	server, err := start(ctx, cfg)
	if err != nil {
		return err
	}
	server.run(ctx)
	return nil
}

// start does all of Run that can fail.
func start(ctx context.Context, cfg Config) (*server, error) {
	client, err := newClient(cfg.Kubeconfig)
	if err != nil {
		return nil, err
	}
	root := resolve(cfg.Root)
	if err := makeShared(root); err != nil {
		return nil, err
	}
	disk := disk{root: root}
	if err := disk.remount(ctx); err != nil {
		// The other volumes are fine and must be served all the same.
		klog.FromContext(ctx).Error(err, "Some volumes are unusable")
	}
	return newServer(ctx, client, disk), nil
}

// Prepare creates the volumes folder and makes it a shared mount point, so that
// what is mounted below it later appears in the nodes, then mounts the volumes
// of enforced size again that a reboot has unmounted. It must be called before
// a node's mount namespace is cloned from the host's, and can be called again
// at any time. A volume that cannot be mounted is part of the error, and does
// not keep the others from being mounted.
func Prepare(ctx context.Context, root string) error {
	root = resolve(root)
	if err := makeShared(root); err != nil {
		return err
	}
	return disk{root: root}.remount(ctx)
}

func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	rest.AddUserAgent(config, "localkube-provisioner")
	// Protobuf is cheaper to decode than JSON; the API server's priority and
	// fairness makes a limit in the client needless.
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

// server is the provisioning controller and the resizer, over the same informers.
type server struct {
	informers    informers.SharedInformerFactory
	provisioning *controller.ProvisionController
	resizer      *resizer
}

// newServer must not run while another client of the process is in use: the
// controller's constructor writes to the scheme that all of them share.
func newServer(ctx context.Context, client kubernetes.Interface, disk disk) *server {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTransform(withoutManagedFields))
	claims := factory.Core().V1().PersistentVolumeClaims()
	volumes := factory.Core().V1().PersistentVolumes()
	classes := factory.Storage().V1().StorageClasses()

	resizer := newResizer(ctx, client, claims, volumes, disk)
	provisioning := controller.NewProvisionController(ctx, client, Provisioner,
		&provisioner{nodes: client.CoreV1().Nodes(), disk: disk},
		controller.ClaimsInformer(claims.Informer()),
		controller.VolumesInformer(volumes.Informer()),
		controller.ClassesInformer(classes.Informer()),
		// One process serves the cluster: an election would only delay it.
		controller.LeaderElection(false),
		// Deleting a bound volume before its claim must not leak its files.
		controller.AddFinalizer(true),
		controller.ResyncPeriod(0),
		controller.RateLimiter(newLimiter()),
		controller.CreateProvisionedPVLimiter(newLimiter()),
		// Zero means to try for ever.
		controller.FailedProvisionThreshold(0),
		controller.FailedDeleteThreshold(0))
	return &server{informers: factory, provisioning: provisioning, resizer: resizer}
}

func (s *server) run(ctx context.Context) {
	s.informers.Start(ctx.Done())
	var running sync.WaitGroup
	running.Go(func() { s.resizer.run(ctx) })
	s.provisioning.Run(ctx)
	running.Wait()
	s.informers.Shutdown()
}

// withoutManagedFields drops what is often the larger half of an object and is
// never read here. An update that lacks it leaves it as it is on the server.
func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func newLimiter() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryMin, retryMax)
}
