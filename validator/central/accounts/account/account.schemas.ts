/** Wire schemas of accounts. */
import { z } from 'zod';
import { AccountProof } from '#shared/signing/account-proof.ts';
import { TemplateResponse } from '../../market/templates/template.schemas.ts';
import { SOURCES } from '../../platform/identity.ts';
import {
  displayName,
  EmailAddress,
  MAX_EMAIL_CHARS,
  NaiveTime,
  optional,
  Usd,
  Uuid,
} from '../../platform/wire.ts';

/** Bounds the cost of hashing. */
const MAX_PASSWORD_CHARS = 128;
const MIN_PASSWORD_CHARS = 8;

const NewPassword = z.string().min(MIN_PASSWORD_CHARS).max(MAX_PASSWORD_CHARS);
const GivenPassword = z.string().max(MAX_PASSWORD_CHARS);
const AccountName = displayName(100);

/** Payment method for referral shares. */
const ReferralPayoutMethod = z.enum(['balance', 'stripe_connect', 'crypto']);
export type ReferralPayoutMethod = z.output<typeof ReferralPayoutMethod>;

export const User = z
  .object({
    id: z.uuid(),
    name: z.string(),
    email: z.string(),
    balance: Usd,
    held: Usd,
    available: Usd,
    burn_per_hour: Usd,
    runs_out_at: NaiveTime.nullable(),
    stripe_customer_id: z.string().nullable(),
    stripe_connect_account_id: z.string().nullable(),
    stripe_onboarding_completed: z.boolean(),
    referral_payout_method: ReferralPayoutMethod,
    pending_referral_balance: Usd,
    email_verified: z.boolean(),
    discord_id: z.string().nullable(),
    disable_incoming_connections: z.boolean(),
    avatar_url: z.string().nullable(),
    company_name: z.string().nullable(),
    validator_hotkey: z.string().nullable(),
    admin: z.boolean(),
    internal_member: z.boolean(),
    referral_code: z.string(),
    default_template_id: z.uuid().nullable(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
    workspace: z
      .object({
        id: z.uuid(),
        name: z.string(),
        role: z.string(),
        billing_owner_user_id: z.uuid(),
        is_personal: z.boolean(),
      })
      .nullable(),
  })
  .meta({ id: 'User' });
export type User = z.output<typeof User>;

export const CreateUserDto = z
  .object({
    name: optional(AccountName),
    email: EmailAddress,
    password: NewPassword,
    referral_code: optional(z.string().max(64)),
  })
  .meta({ id: 'CreateUserDto' });
export type CreateUserDto = z.output<typeof CreateUserDto>;

export const SignUpResponse = z
  .object({
    msg: z.literal('success'),
    api_key: z.string(),
    signup_credit_granted: z.boolean(),
    user: User,
  })
  .meta({ id: 'SignUpResponse' });

/** A malformed address gets the same 401 as an unknown one. */
export const LoginUserDto = z
  .object({ email: z.string().max(MAX_EMAIL_CHARS), password: GivenPassword })
  .meta({ id: 'LoginUserDto' });
export type LoginUserDto = z.output<typeof LoginUserDto>;

export const LoginResponse = z
  .object({ user: User, token: z.string(), expires_at: NaiveTime })
  .meta({ id: 'LoginResponse' });

/** Default hours by source of the rental; null removes a default. The service checks the bounds. */
const TerminationHours = z.partialRecord(z.enum(SOURCES), z.number().nullable());
const WebAddress = z.url({ protocol: /^https?$/ }).max(2_048);

/** Null clears `company_name`, `avatar_url`, the validator's hotkey and `preference.default_template_id`. */
export const UpdateUserDto = z
  .object({
    name: optional(AccountName),
    company_name: displayName(200).nullish(),
    avatar_url: WebAddress.nullish(),
    disable_incoming_connections: optional(z.boolean()),
    email: optional(EmailAddress),
    new_password: optional(NewPassword),
    current_password: optional(GivenPassword),
    /** Links the account to a validator, on whose behalf its sessions may then act; null unlinks it. */
    validator_proof: AccountProof.nullish(),
    preference: optional(
      z.object({
        default_template_id: Uuid.nullish(),
        default_termination_hours: optional(TerminationHours),
      }),
    ),
  })
  .meta({ id: 'UpdateUserDto' });
export type UpdateUserDto = z.output<typeof UpdateUserDto>;

/** Long enough for the addresses of all common chains. */
const CryptoAddress = z
  .string()
  .trim()
  .regex(/^[0-9A-Za-z:._-]{8,128}$/, 'Not an address');
const CryptoNetwork = z
  .string()
  .trim()
  .regex(/^[0-9A-Za-z][0-9A-Za-z ._-]{0,63}$/, 'Not a network');

export const ReferralPayoutMethodUpdateDto = z
  .object({
    referral_payout_method: ReferralPayoutMethod,
    crypto_address: optional(CryptoAddress),
    crypto_network: optional(CryptoNetwork),
  })
  .meta({ id: 'ReferralPayoutMethodUpdateDto' });
export type ReferralPayoutMethodUpdateDto = z.output<typeof ReferralPayoutMethodUpdateDto>;

export const UserPreference = z
  .object({
    default_template_id: z.uuid().nullable(),
    default_template: TemplateResponse.nullable(),
    default_termination_hours: z.record(z.string(), z.number()),
  })
  .meta({ id: 'UserPreference' });
export type UserPreference = z.output<typeof UserPreference>;

const MailedToken = z.string().min(1).max(200);

export const RequestResetPasswordDto = z
  .object({ email: z.string().max(MAX_EMAIL_CHARS) })
  .meta({ id: 'RequestResetPasswordDto' });

export const ResetPasswordDto = z
  .object({ token: MailedToken, new_password: NewPassword })
  .meta({ id: 'ResetPasswordDto' });
export type ResetPasswordDto = z.output<typeof ResetPasswordDto>;

export const ResendVerifyEmailDto = z
  .object({ email: z.string().max(MAX_EMAIL_CHARS) })
  .meta({ id: 'ResendVerifyEmailDto' });

export const VerifyEmailDto = z.object({ token: MailedToken }).meta({ id: 'VerifyEmailDto' });

export const MessageResponse = z
  .object({ success: z.literal(true), message: z.string() })
  .meta({ id: 'MessageResponse' });
export type MessageResponse = z.output<typeof MessageResponse>;

export const UserDeleted = z
  .object({ success: z.literal(true), id: z.uuid() })
  .meta({ id: 'UserDeleted' });

export const ClientAddress = z.object({ ip: z.string() }).meta({ id: 'ClientAddress' });
export const UserSearchQuery = z.object({ email: z.string().min(1).max(MAX_EMAIL_CHARS) });
export const UserSearchResponse = z
  .object({ exists: z.boolean() })
  .meta({ id: 'UserSearchResponse' });
