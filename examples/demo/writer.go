package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/test/consistencyclient"
)

// write lets a client write from now on, with the certificate that every client mounts.
func (s *stage) write(ctx context.Context) error {
	v := s.look(ctx)
	secret := &corev1.Secret{}
	if err := s.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v.object.Status.ClientSecretName}, secret); err != nil {
		return fmt.Errorf("no certificate for clients: %w", err)
	}
	config, err := consistencyclient.TLSConfig(secret, v.object.Status.ServiceName)
	if err != nil {
		return err
	}
	service := types.NamespacedName{Namespace: namespace, Name: v.object.Status.ServiceName}
	s.writer = consistencyclient.Start(ctx, consistencyclient.Options{Find: consistencyclient.Service(s.cache, service), TLS: config})
	fmt.Printf("\nA client writes from now on, 200 keys a second, with the Secret %s\n", secret.Name)
	return nil
}

// prove reads back all that was acknowledged.
func (s *stage) prove(ctx context.Context) error {
	s.writer.Stop()
	tally := s.writer.Stats()
	fmt.Printf("\nIs anything lost?\n  %s\n", tally)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	lost, err := s.writer.Lost(ctx)
	switch {
	case err != nil:
		return err
	case len(lost) > 0:
		return fmt.Errorf("%d of %d acknowledged writes are lost, such as %s", len(lost), tally.Acknowledged, lost[0])
	case tally.Acknowledged == 0:
		return errors.New("the client could write nothing: does this machine reach pods by their addresses?")
	}
	fmt.Printf("  all %d acknowledged writes are there\n", tally.Acknowledged)
	return nil
}
