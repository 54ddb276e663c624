/** Tokens of providers as requests carry them; how they are made and kept is in providers/. */
import type { Hotkey } from '#shared/signing/hotkey.ts';

/** How they begin; a session's token is a JWT and begins otherwise. */
export const PROVIDER_TOKEN_PREFIX = 'lpk_';

/** Whom a token stands for, or why it stands for nobody. */
export type ProviderTokenCheck =
  | { state: 'valid'; tokenId: string; providerId: string; hotkey: Hotkey }
  | { state: 'expired' }
  | { state: 'invalid' };
