// Package factory puts the operator together: rules, driver, and what it may do.
package factory

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/operator"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/candy"
	"awesome.corp.com/chocolate-factory/candy/driver"
)

// What the operator may do, and nothing else.
//
// +kubebuilder:rbac:groups=awesome.corp.com,resources=candies,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=awesome.corp.com,resources=candies/status,verbs=update
// +kubebuilder:rbac:groups=awesome.corp.com,resources=candies/finalizers,verbs=update
//
// For the engine, its history and its words:
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=list;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=chocolate-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=chocolate-system
//
// To ask who reads its metrics:
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
//
// For previews and advice:
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,resourceNames=chocolate,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=chocolate-webhook-certificate,verbs=get;list;watch;create;patch,namespace=chocolate-system

// Operator is the program, and the same in tests: there the machine of a candy may be elsewhere than its Service says.
func Operator(version string, address func(*v1.Candy) string) operator.Options {
	return operator.Options{
		Name: "chocolate", Short: "Makes chocolate on machines outside of Kubernetes", Version: version,
		APIs: []func(*runtime.Scheme) error{v1.AddToScheme},
		Register: func(op *engine.Operator) error {
			return engine.Register(op, engine.App[*v1.Candy, candy.World]{
				Name: candy.Name, Planner: candy.Planner{}, Steps: candy.Steps(), Gates: candy.Gates(), Driver: driverAt(address), Finalize: true,
			})
		},
	}
}

func driverAt(address func(*v1.Candy) string) func(kube.Access) lifecycle.Driver[*v1.Candy, candy.World] {
	if address == nil {
		return driver.New
	}
	return func(kube.Access) lifecycle.Driver[*v1.Candy, candy.World] { return driver.At(address) }
}
