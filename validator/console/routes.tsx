/** All pages: their path, who may see them, and their place in the navigation. */
import type { ComponentType } from 'react';
import { lazyPart } from './parts/lazy-part.tsx';
import { paths } from './paths.ts';
import { HomePage } from './renter/home-page.tsx';

/** `operator`: an account with the role; `provider`: a session of the portal. */
export type Audience = 'anyone' | 'renter' | 'provider' | 'operator';
export type NavGroup = 'Rent' | 'Account' | 'Provide' | 'Validator' | 'Operate';

export type PageRoute = {
  /** Pattern of the path. */
  path: string;
  /** Text of the link, and of the entry in the search. */
  title: string;
  audience: Audience;
  /** Absent: the page has no link in the navigation. */
  group?: NavGroup;
  page: ComponentType;
};

export const ROUTES: readonly PageRoute[] = [
  { path: paths.home, title: 'Home', audience: 'renter', group: 'Rent', page: HomePage },
  {
    path: paths.pods,
    title: 'Pods',
    audience: 'renter',
    group: 'Rent',
    page: lazyPart(() => import('./renter/pods-page.tsx').then(({ PodsPage }) => PodsPage)),
  },
  {
    path: '/pods/:id/:tab?',
    title: 'Pod',
    audience: 'renter',
    page: lazyPart(() => import('./renter/pod-page.tsx').then(({ PodPage }) => PodPage)),
  },
  {
    path: paths.logs(),
    title: 'Logs',
    audience: 'renter',
    group: 'Rent',
    page: lazyPart(() => import('./logs/logs-page.tsx').then(({ LogsPage }) => LogsPage)),
  },
  {
    path: paths.logIn,
    title: 'Log in',
    audience: 'anyone',
    page: lazyPart(() => import('./session/log-in-page.tsx').then(({ LogInPage }) => LogInPage)),
  },
  {
    path: paths.signUp,
    title: 'Create an account',
    audience: 'anyone',
    page: lazyPart(() => import('./session/sign-up-page.tsx').then(({ SignUpPage }) => SignUpPage)),
  },
  {
    path: paths.resetPassword,
    title: 'Reset the password',
    audience: 'anyone',
    page: lazyPart(() =>
      import('./session/mail-pages.tsx').then(({ ResetPasswordPage }) => ResetPasswordPage),
    ),
  },
  {
    path: paths.verifyEmail,
    title: 'Confirm your address',
    audience: 'anyone',
    page: lazyPart(() =>
      import('./session/mail-pages.tsx').then(({ VerifyEmailPage }) => VerifyEmailPage),
    ),
  },
];
