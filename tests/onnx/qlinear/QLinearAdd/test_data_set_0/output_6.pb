By6Jf_f“¸  ·4@¨U9 6R~l¨“£jŸDZ™>[½NQ¯,d7
“:ca¾’º=k³9$B¼Tg<Uz[—Ix–±VŒi©\K\~–¦.uœ6F£re„e¾“!lŸ…