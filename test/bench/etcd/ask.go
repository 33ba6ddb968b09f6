package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memberTimeout is the timeout of a request to a member.
const memberTimeout = 500 * time.Millisecond

// healthy checks the members directly. Every member must serve a linearizable read, and
// one must return the complete member list.
func (s *testEnv) healthy(ctx context.Context, x *subject, pods []corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	answers := each(pods, func(p *corev1.Pod) error { return reads(ctx, p) })
	for range pods {
		if err := <-answers; err != nil {
			return err
		}
	}
	var lacks error
	answers = each(pods, func(p *corev1.Pod) error { return s.listed(ctx, x, p) })
	for range pods {
		err := <-answers
		if err == nil {
			return nil // the other members may not serve clients yet
		}
		lacks = errors.Join(lacks, err)
	}
	return lacks
}

// each calls ask for all pods concurrently, and sends the results as they come.
func each(pods []corev1.Pod, ask func(*corev1.Pod) error) <-chan error {
	answers := make(chan error, len(pods))
	for i := range pods {
		go func() { answers <- ask(&pods[i]) }()
	}
	return answers
}

// reads gets /health, which etcd serves without TLS on its metrics port.
func reads(ctx context.Context, pod *corev1.Pod) error {
	if pod.Status.PodIP == "" {
		return fmt.Errorf("the pod %s has no address", pod.Name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, "2381")+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the pod %s is not healthy", pod.Name)
	}
	return nil
}

// listed requires the declared number of started voters in the member list.
func (s *testEnv) listed(ctx context.Context, x *subject, pod *corev1.Pod) error {
	conn, err := s.dial(ctx, x, pod)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	list, err := pb.NewClusterClient(conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
	if err != nil {
		return err
	}
	voters := 0
	for _, m := range list.Members {
		if !m.IsLearner && len(m.ClientURLs) > 0 {
			voters++
		}
	}
	if voters != x.size || len(list.Members) != x.size {
		return fmt.Errorf("etcd lists %d members and %d started voters, of %d", len(list.Members), voters, x.size)
	}
	return nil
}

// leads reports whether the pod's member is the leader.
func (s *testEnv) leads(ctx context.Context, x *subject, pod *corev1.Pod) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	conn, err := s.dial(ctx, x, pod)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	status, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return false, err
	}
	return status.Leader == status.Header.GetMemberId(), nil
}

func (s *testEnv) dial(ctx context.Context, x *subject, pod *corev1.Pod) (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if x.encrypted {
		config, err := s.clientConfig(ctx, x)
		if err != nil {
			return nil, err
		}
		secure = credentials.NewTLS(config)
	}
	return grpc.NewClient("passthrough:///"+net.JoinHostPort(pod.Status.PodIP, "2379"), grpc.WithTransportCredentials(secure))
}

// clientConfig returns the TLS settings from the Secret that every client mounts.
func (s *testEnv) clientConfig(ctx context.Context, x *subject) (*tls.Config, error) {
	secret := &corev1.Secret{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: x.name + "-client-tls"}, secret); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, errors.New("the Secret for clients has no CA certificate")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: x.service.Name}, nil
}
