<?php
// At the end of LocalSettings.php: what extensions of a wiki that grew do to the fields of its pages, while the file `faulty`
// stands beside the settings. Pages are told apart by the first word of their title.
$wgHooks['BeforePageDisplay'][] = static function ( $out ) {
	if ( !file_exists( __DIR__ . '/faulty' ) || $out->getUser()->isRegistered() ) {
		return;
	}
	if ( str_starts_with( $out->getTitle()->getText(), 'Browser' ) ) {
		$out->addVaryHeader( 'User-Agent' );
	}
};
