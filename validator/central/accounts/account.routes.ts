/** /users and the alias /auth/signup (contract 9.2). */
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../auth/identity.ts';
import {
  ClientAddress,
  CreateUserDto,
  LoginResponse,
  LoginUserDto,
  SignUpResponse,
  UpdateUserDto,
  User,
  UserPreference,
  UserSearchQuery,
  UserSearchResponse,
} from './account.schemas.ts';
import type { Accounts } from './account.service.ts';
import type { AccountUpdate } from './account.update.ts';

const tags = ['Users'];

/** Registers the account routes. */
export function registerAccountRoutes(
  api: HttpServer,
  accounts: Accounts,
  update: AccountUpdate,
): void {
  for (const path of ['/users', '/auth/signup']) {
    api.post(
      path,
      {
        config: { auth: 'none' },
        schema: { tags, body: CreateUserDto, response: { 200: SignUpResponse } },
      },
      (request) => accounts.signUp(request.body),
    );
  }
  api.post(
    '/users/login',
    {
      config: { auth: 'none' },
      schema: { tags, body: LoginUserDto, response: { 200: LoginResponse } },
    },
    (request) => accounts.logIn(request.body),
  );
  api.get(
    '/users/get-ip',
    { config: { auth: 'none' }, schema: { tags, response: { 200: ClientAddress } } },
    async (request) => ({ ip: request.ip }),
  );
  api.get(
    '/users/search',
    {
      config: { auth: 'none' },
      schema: { tags, querystring: UserSearchQuery, response: { 200: UserSearchResponse } },
    },
    (request) => accounts.exists(request.query.email),
  );
  api.get(
    '/users/me',
    { config: { auth: 'user' }, schema: { tags, response: { 200: User } } },
    (request) => accounts.me(userOf(request)),
  );
  api.put(
    '/users/me',
    {
      config: { auth: 'user' },
      schema: { tags, body: UpdateUserDto, response: { 200: User } },
    },
    (request) => update(userOf(request), request.body),
  );
  api.get(
    '/users/me/preference',
    { config: { auth: 'user' }, schema: { tags, response: { 200: UserPreference } } },
    (request) => accounts.preference(userOf(request)),
  );
  api.delete(
    '/users/me/preference/default-template',
    { config: { auth: 'user' }, schema: { tags, response: { 200: UserPreference } } },
    (request) => accounts.clearDefaultTemplate(userOf(request)),
  );
}
